// Copying many narrow columns at once, as transposes of small tiles in registers.
//
// `Vector` has one or two lanes of 16 bytes. It offers `load` of a lane each from two places,
// `store`, and `low<width>` and `high<width>`, which interleave the elements of the lower or upper
// halves of the lanes of two vectors. Included by the instruction-set specific files only.
#pragma once

#include <cstddef>

#include "kernels.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

template <class Vector, std::size_t width>
struct Tile {
    static constexpr std::size_t columns = 16 / width;
    static constexpr std::size_t rows = columns * Vector::lanes;

    // Row r and row r + columns become the lanes of vector r; interleaving the first half of the
    // vectors with the second log2(columns) times transposes each lane. Only the first `wanted`
    // columns are stored, each `at` bytes after its place.
    static void copy(const char* from, std::ptrdiff_t stride, char* const* places, std::size_t at,
                     std::size_t wanted) {
        typename Vector::type lines[columns];
        for (std::size_t i = 0; i < columns; ++i) {
            const char* row = from + static_cast<std::ptrdiff_t>(i) * stride;
            const auto other = static_cast<std::ptrdiff_t>(rows - columns) * stride;
            lines[i] = Vector::load(row, row + other);
        }
        for (std::size_t step = 1; step < columns; step *= 2) interleave(lines);
        for (std::size_t i = 0; i < columns; ++i) {
            if (i < wanted) Vector::store(places[i] + at, lines[i]);
        }
    }

  private:
    static void interleave(typename Vector::type* lines) {
        typename Vector::type mixed[columns];
        for (std::size_t i = 0; i < columns / 2; ++i) {
            mixed[2 * i] = Vector::template low<width>(lines[i], lines[i + columns / 2]);
            mixed[2 * i + 1] = Vector::template high<width>(lines[i], lines[i + columns / 2]);
        }
        for (std::size_t i = 0; i < columns; ++i) lines[i] = mixed[i];
    }
};

// All of some columns that are a multiple of a tile's; where the rows are not, the last tile begins
// earlier and copies some elements again. The places are held here, where the compiler knows that
// no byte that is stored can change them.
template <class Vector, std::size_t width, std::size_t number>
void transpose_columns(const Rows& rows, const Column* columns) {
    using Tile = Tile<Vector, width>;
    const std::ptrdiff_t stride = rows.stride;
    const std::size_t count = rows.count;
    const char* from = source_of(rows, 0, *columns);
    char* places[number];
    for (std::size_t i = 0; i < number; ++i) places[i] = place_of(rows, 0, columns[i]);
    for (std::size_t next = 0; next < count; next += Tile::rows) {
        const std::size_t row = next + Tile::rows <= count ? next : count - Tile::rows;
        const char* line = from + static_cast<std::ptrdiff_t>(row) * stride;
        for (std::size_t i = 0; i < number; i += Tile::columns) {
            Tile::copy(line + i * width, stride, places + i, row * width, Tile::columns);
        }
    }
}

// Adjacent columns, at least as many columns and rows as a tile has. Where they are no multiple,
// the last tile begins earlier and copies some elements again.
template <class Vector, std::size_t width>
void transpose(const Rows& rows, const Column* columns, std::size_t count) {
    using Tile = Tile<Vector, width>;
    constexpr std::size_t together = 64 / width;  // columns of a cache line, read while it is there
    std::size_t column = 0;
    for (; column + together <= count; column += together) {
        transpose_columns<Vector, width, together>(rows, columns + column);
    }
    for (; column < count; column += Tile::columns) {
        const std::size_t first = column + Tile::columns <= count ? column : count - Tile::columns;
        transpose_columns<Vector, width, Tile::columns>(rows, columns + first);
    }
}

// Adjacent columns, fewer than a tile has: what lies behind them is read and dropped, unless it
// lies at `end` or beyond.
template <class Vector, std::size_t width>
void transpose_few(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    using Tile = Tile<Vector, width>;
    const std::ptrdiff_t stride = rows.stride;
    const std::size_t last = rows.count;
    const char* from = source_of(rows, 0, *columns);
    char* places[Tile::columns] = {};
    for (std::size_t i = 0; i < count; ++i) places[i] = place_of(rows, 0, columns[i]);
    std::size_t row = 0;
    for (; row + Tile::rows <= last; row += Tile::rows) {
        const std::size_t highest = stride > 0 ? row + Tile::rows - 1 : row;
        if (end - (from + static_cast<std::ptrdiff_t>(highest) * stride) < 16) break;
        Tile::copy(from + static_cast<std::ptrdiff_t>(row) * stride, stride, places, row * width,
                   count);
    }
    const Rows rest = some_of(rows, row, rows.count - row);
    for (std::size_t i = 0; i < count; ++i) copy_column(rest, columns[i]);
}

// How many columns, from the first on, lie side by side and are as wide as the first.
inline std::size_t count_alike(const Column* columns, std::size_t count) {
    const std::size_t width = columns->width;
    std::size_t alike = columns->step == width ? 1 : 0;
    while (alike != 0 && alike < count && columns[alike].width == width &&
           columns[alike].step == width &&
           columns[alike].from == columns[alike - 1].from + static_cast<std::ptrdiff_t>(width)) {
        ++alike;
    }
    return alike;
}

// For fewer columns than this, something else is faster.
template <std::size_t width>
constexpr std::size_t fewest = width == 1   ? 5
                               : width == 2 ? 3
                                            : 2;

constexpr std::size_t enough = fewest<1>;  // for any width

template <class Vector, std::size_t width>
bool try_transpose_of(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    using Tile = Tile<Vector, width>;
    if (count < fewest<width> || rows.count < Tile::rows) return false;
    if (count >= Tile::columns) {
        transpose<Vector, width>(rows, columns, count);
    } else {
        transpose_few<Vector, width>(rows, columns, count, end);
    }
    return true;
}

template <class Vector>
bool try_transpose(const Rows& rows, const Column* columns, std::size_t alike, const char* end) {
    switch (columns->width) {
        case 1:
            return try_transpose_of<Vector, 1>(rows, columns, alike, end);
        case 2:
            return try_transpose_of<Vector, 2>(rows, columns, alike, end);
        case 4:
            return try_transpose_of<Vector, 4>(rows, columns, alike, end);
        case 8:
            return try_transpose_of<Vector, 8>(rows, columns, alike, end);
        default:
            return false;
    }
}

}  // namespace
}  // namespace tensorsplit
