// Copying one column, strip by strip. Included by the instruction-set specific files only.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels.hpp"

namespace tensorsplit {
namespace {

// Narrower strips than `medium` are copied several at a time, `wide` ones row by row.
constexpr std::size_t medium = 16;
constexpr std::size_t wide = 256;

inline const char* source_of(const Rows& rows, std::size_t row, const Column& column) {
    return rows.source + static_cast<std::ptrdiff_t>(row) * rows.stride + column.from;
}

inline char* target_of(const Rows& rows, std::size_t row, const Column& column) {
    return column.to + (rows.first + row) * column.step;
}

inline Rows some_of(const Rows& rows, std::size_t begin, std::size_t count) {
    return {rows.source + static_cast<std::ptrdiff_t>(begin) * rows.stride, rows.stride, count,
            rows.first + begin};
}

// Elements of a width known to the compiler; where the stride is known too, it can vectorise the
// loop.
template <std::size_t width>
void copy_elements(const char* from, std::ptrdiff_t stride, char* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(to + i * width, from + static_cast<std::ptrdiff_t>(i) * stride, width);
    }
}

template <std::size_t width>
void copy_elements_by_stride(const char* from, std::ptrdiff_t stride, char* to, std::size_t count) {
    constexpr auto size = static_cast<std::ptrdiff_t>(width);
    if (stride == -size) return copy_elements<width>(from, -size, to, count);
    if (stride == 2 * size) return copy_elements<width>(from, 2 * size, to, count);
    if (stride == 3 * size) return copy_elements<width>(from, 3 * size, to, count);
    if (stride == 4 * size) return copy_elements<width>(from, 4 * size, to, count);
    copy_elements<width>(from, stride, to, count);
}

// Strips of a width known to the compiler: a load and a store each.
template <std::size_t width>
void copy_strips(const Rows& rows, const Column& column) {
    const char* from = source_of(rows, 0, column);
    char* to = target_of(rows, 0, column);
    const std::ptrdiff_t stride = rows.stride;
    const std::size_t step = column.step, count = rows.count;
    if (step == width) return copy_elements_by_stride<width>(from, stride, to, count);
    for (std::size_t row = 0; row < count; ++row) {
        std::memcpy(to, from, width);
        from += stride;
        to += step;
    }
}

// Strips of a width between `half` and twice that: two overlapping copies.
template <std::size_t half>
void copy_halves(const Rows& rows, const Column& column) {
    const char* from = source_of(rows, 0, column);
    char* to = target_of(rows, 0, column);
    const std::ptrdiff_t stride = rows.stride;
    const std::size_t step = column.step, count = rows.count, second = column.width - half;
    for (std::size_t row = 0; row < count; ++row) {
        std::memcpy(to, from, half);
        std::memcpy(to + second, from + second, half);
        from += stride;
        to += step;
    }
}

inline void copy_column(const Rows& rows, const Column& column) {
    switch (column.width) {
        case 1:
            return copy_strips<1>(rows, column);
        case 2:
            return copy_strips<2>(rows, column);
        case 4:
            return copy_strips<4>(rows, column);
        case 8:
            return copy_strips<8>(rows, column);
        case 16:
            return copy_strips<16>(rows, column);
        case 32:
            return copy_strips<32>(rows, column);
        case 64:
            return copy_strips<64>(rows, column);
        default:
            break;
    }
    if (column.width < 4) return copy_halves<2>(rows, column);
    if (column.width < 8) return copy_halves<4>(rows, column);
    if (column.width < 16) return copy_halves<8>(rows, column);
    if (column.width < 32) return copy_halves<16>(rows, column);
    if (column.width < 64) return copy_halves<32>(rows, column);
    if (column.width < 128) return copy_halves<64>(rows, column);
    for (std::size_t row = 0; row < rows.count; ++row) {
        std::memcpy(target_of(rows, row, column), source_of(rows, row, column), column.width);
    }
}

}  // namespace
}  // namespace tensorsplit
