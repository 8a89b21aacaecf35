// The interface of the instruction-set specific files: copying rows of bytes into columns.
//
// Each of those files is compiled with flags of its own, so this header may have no inline function
// or template: the linker keeps only one body of those, which could be one that the processor can't
// run.
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

// The strips of an array that are joined with others.
struct Strip {
    const char* from;       // where the first one lies
    std::ptrdiff_t stride;  // bytes from a strip to the next; may be negative
    std::size_t width;      // bytes of a strip
};

// Rows that strips of several arrays are joined to, one after the other.
struct JoinedRows {
    char* to;
    std::size_t step;  // bytes from a row to the next; at least the widths
    std::size_t count;
};

constexpr std::size_t most_strips = 256;  // of a row

// How parts are stored. What an instruction set lacks is plain there.
enum class Stores : unsigned char {
    plain,
    prefetched,    // what is far from the processor is fetched before it is read or written
    non_temporal,  // past the cache
};

struct Kernels {
    const char* name;
    void (*copy_rows)(const Rows& rows, const Column* columns, std::size_t count, Stores stores);
    // Join narrow strips, up to `most_strips` of each row.
    void (*join_rows)(const JoinedRows& rows, const Strip* strips, std::size_t count,
                      Stores stores);
    // A fence, to be called by each thread after non-temporal stores, before others read them.
    void (*finish)();
};

extern const Kernels baseline;
#ifdef TENSORSPLIT_VECTORS
extern const Kernels shuffling;  // for x86-64 with AVX2, and Arm
#endif

}  // namespace tensorsplit
