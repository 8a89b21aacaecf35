// What the instruction-set specific files offer: rows of bytes into columns.
//
// Each instruction set is a file compiled with flags of its own, so nothing in this header may be
// an inline function or a template: the linker keeps one body of those, and it could be the one
// that the processor can't run.
#pragma once

#include <cstddef>

namespace tensorsplit {

// A strip of every row, and where the strips go.
struct Column {
    std::ptrdiff_t from;  // bytes from the start of a row of the source
    std::size_t width;    // bytes of the strip
    char* to;             // where strip number 0 goes
    std::size_t step;     // bytes between the strips at the destination; at least the width
};

// Some rows of the source. The strips of the first of them are number `first` at the destinations.
struct Rows {
    const char* source;
    std::ptrdiff_t stride;  // bytes from a row to the next; may be negative
    std::size_t count;
    std::size_t first;
};

// Each function takes care to write around the cache if `around` says so, where it can.
struct Kernels {
    const char* name;
    void (*copy_rows)(const Rows& rows, const Column* columns, std::size_t count, bool around);
    // To be called by each thread that has written around the cache, before others read that.
    void (*finish)();
};

extern const Kernels baseline;
#ifdef TENSORSPLIT_AVX2
extern const Kernels avx2;
#endif

}  // namespace tensorsplit
