// Writing around the cache: what is large enough is gone from there before anybody reads it, and a
// line that is written in whole need not be fetched first. Included by the instruction-set specific
// files only.
//
// `Vector` offers `stream`, which writes a vector to an address that is a multiple of its size, and
// `finish_streams`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

constexpr std::size_t line = 64;  // bytes of a line of the cache

inline std::size_t place_in_line(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % line;
}

// Asks for what is read next, line by line, while something else is written.
template <class Vector>
class Ahead {
  public:
    // `bytes` of each of the rows, from `from` on.
    Ahead(const char* from, std::ptrdiff_t stride, std::size_t rows, std::size_t bytes)
        : row_(from), stride_(stride), rows_(rows), bytes_(bytes) {}

    void ask() {
        if (rows_ == 0) return;
        Vector::prefetch(row_ + at_);
        at_ += line;
        if (at_ < bytes_) return;
        at_ -= bytes_;  // so that adjacent rows are asked for line by line
        row_ += stride_;
        --rows_;
    }

  private:
    const char* row_;
    std::ptrdiff_t stride_;
    std::size_t rows_, bytes_, at_ = 0;
};

// Lines that are not written in whole go through the cache: another write will add to them.
template <class Vector>
void stream(char* to, const char* from, std::size_t bytes, Ahead<Vector>& ahead) {
    const std::size_t head = (line - place_in_line(to)) % line;
    if (bytes < head + line) {
        std::memcpy(to, from, bytes);
        ahead.ask();
        return;
    }
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + line <= bytes; at += line) {
        for (std::size_t i = 0; i < line; i += sizeof(typename Vector::type)) {
            Vector::stream(to + at + i, Vector::load_whole(from + at + i));
        }
        ahead.ask();
    }
    std::memcpy(to + at, from + at, bytes - at);
}

// Where strips are put together before they are written as one: a part of the second-level cache.
constexpr std::size_t stage_bytes = 128 * 1024;
constexpr std::size_t fewest_staged_bytes = 24 * 1024;
constexpr std::size_t burst = 1536;              // of a column, that are written at a time
constexpr std::size_t most_staged = 256;         // columns
constexpr std::size_t widest_staged = 1024;      // bytes of a column
constexpr std::size_t most_staged_bytes = 4096;  // of a row

inline char* stage() {
    alignas(line) thread_local char memory[stage_bytes];
    return memory;
}

inline bool can_be_staged(const Column& column) {
    return column.step == column.width && column.width < widest_staged;
}

// How many of the columns, from the first on, are put together at a time.
inline std::size_t count_staged(const Column* columns, std::size_t count) {
    std::size_t staged = 0, bytes = 0;
    while (staged < count && staged < most_staged && can_be_staged(columns[staged])) {
        bytes += columns[staged].width;
        if (staged != 0 && bytes > most_staged_bytes) break;
        ++staged;
    }
    return staged;
}

// How many rows there are before a strip of the column begins with a line; 0 if that is now or
// never.
inline std::size_t rows_to_line(const Rows& rows, const Column& column) {
    const std::size_t bytes = (line - place_in_line(place_of(rows, 0, column))) % line;
    return bytes % column.width == 0 ? bytes / column.width : 0;
}

// Copy columns that can be staged; `copy` copies rows to columns.
template <class Vector, class Copy>
void copy_staged(const Rows& rows, const Column* columns, std::size_t count, Copy copy) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < count; ++i) width += columns[i].width;
    const std::size_t bytes = std::clamp(count * burst, fewest_staged_bytes, stage_bytes);
    std::size_t together = std::max<std::size_t>((bytes - 2 * line * count) / width, 1);
    if (together > line) together -= together % line;    // whole lines of every column,
    std::size_t taken = rows_to_line(rows, columns[0]);  // once the first begins with one
    if (taken == 0) taken = together;
    Column staged[most_staged];
    for (std::size_t row = 0; row < rows.count;) {
        const std::size_t left = rows.count - row;
        Rows some = some_of(rows, row, std::min(left, taken));
        taken = together;
        char* next = stage();
        for (std::size_t i = 0; i < count; ++i) {  // in the same places of lines as they will go to
            const std::size_t bytes = some.count * columns[i].width;
            char* to = next + place_in_line(place_of(some, 0, columns[i]));
            staged[i] = {columns[i].from, columns[i].width, to, columns[i].width};
            next += (line + bytes + line - 1) / line * line;
        }
        const std::size_t first = some.first;
        some.first = 0;
        copy(some, staged, count);
        some.first = first;
        const std::size_t rest = left - some.count;
        Ahead<Vector> ahead(source_of(rows, row + some.count, *columns), rows.stride,
                            rest < together ? rest : together, width);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t bytes = some.count * columns[i].width;
            stream<Vector>(place_of(some, 0, columns[i]), staged[i].to, bytes, ahead);
        }
        row += some.count;
    }
}

// Row by row, columns that are too wide to be staged.
template <class Vector>
void stream_wide(const Rows& rows, const Column* columns, std::size_t count) {
    Ahead<Vector> nothing(rows.source, 0, 0, 0);
    for (std::size_t row = 0; row < rows.count; ++row) {
        for (std::size_t i = 0; i < count; ++i) {
            const Column& column = columns[i];
            stream<Vector>(place_of(rows, row, column), source_of(rows, row, column), column.width,
                           nothing);
        }
    }
}

template <class Vector>
void stream_line(const char* from, std::ptrdiff_t stride, char* to, std::size_t count,
                 std::size_t width) {
    const std::size_t together = (fewest_staged_bytes - line) / width;
    for (std::size_t i = 0; i < count; i += together) {
        const std::size_t some = count - i < together ? count - i : together;
        char* place = to + i * width;
        char* staged = stage() + place_in_line(place);
        copy_line(from + static_cast<std::ptrdiff_t>(i) * stride, stride, staged, some, width);
        const std::size_t rest = count - i - some;
        const char* next = from + static_cast<std::ptrdiff_t>(i + some) * stride;
        Ahead<Vector> ahead(next, stride, rest < together ? rest : together, width);
        stream<Vector>(place, staged, some * width, ahead);
    }
}

}  // namespace
}  // namespace tensorsplit
