// Copying many narrow columns at once, as transposes of small tiles in registers.
//
// Included by the instruction-set specific files only.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels.hpp"
#include "lines.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

// The first elements of all vectors, then the second ones, and so on, within each lane: the first
// half of the vectors is interleaved with the second log2(count) times.
template <class Vector, std::size_t width, std::size_t count>
void interleave(typename Vector::type* vectors) {
    if constexpr (count > 1) {
        for (std::size_t step = 1; step < count; step *= 2) {
            typename Vector::type mixed[count];
            for (std::size_t i = 0; i < count / 2; ++i) {
                const auto &a = vectors[i], &b = vectors[i + count / 2];
                mixed[2 * i] = Vector::template low<width>(a, b);
                mixed[2 * i + 1] = Vector::template high<width>(a, b);
            }
            for (std::size_t i = 0; i < count; ++i) vectors[i] = mixed[i];
        }
    }
}

template <class Vector, std::size_t width>
struct Tile {
    static constexpr std::size_t columns = 16 / width;
    static constexpr std::size_t rows = columns * Vector::lanes;

    // Row r, row r + columns and so on become the lanes of vector r; interleaving them transposes
    // each lane.
    static void read(const char* from, std::ptrdiff_t stride, typename Vector::type* lines) {
        const std::ptrdiff_t lane = static_cast<std::ptrdiff_t>(columns) * stride;
        for (std::size_t i = 0; i < columns; ++i) {
            const char* row = from + static_cast<std::ptrdiff_t>(i) * stride;
            lines[i] = Vector::load(row, lane);
        }
        interleave<Vector, width, columns>(lines);
    }
};

// Adjacent columns of at least `height` rows; if stores are non-temporal, of a multiple of it.
// Where the rows are no multiple, the last tiles begin earlier and copy some elements again; where
// the columns are no multiple of a tile's, the last tile reads some columns again, or what follows
// them.
template <class Vector, std::size_t width, std::size_t tiles, Stores stores>
class Transpose {
  public:
    static constexpr std::size_t height = tiles * Tile<Vector, width>::rows;

    static void copy(const Rows& rows, const Column* columns, std::size_t count) {
        constexpr std::size_t together = lines_together * height;
        for (std::size_t block = 0; block < rows.count; block += together) {
            const std::size_t end = std::min(block + together, rows.count);
            Prefetcher<Vector> prefetcher(rows, end, looks_ahead ? together : 0, *columns,
                                          count * width);
            std::size_t done = 0;
            for (; done + of_tile <= count; done += of_tile) {
                copy_tiles<true>(rows, columns + done, block, end, 0, of_tile, prefetcher);
            }
            if (done == count) continue;
            const std::size_t first = done == 0 ? 0 : count - of_tile;
            copy_tiles<false>(rows, columns + first, block, end, done - first, count - first,
                              prefetcher);
        }
    }

  private:
    static constexpr std::size_t of_tile = Tile<Vector, width>::columns;
    static constexpr bool looks_ahead = stores != Stores::plain;
    // From a line to the one in its place in the next block.
    static constexpr std::size_t ahead = lines_together * line;

    // The rows from `row` up to `last` of as many columns as a tile has. Those from number `begin`
    // up to `end` are stored, or all of them.
    template <bool all>
    static void copy_tiles(const Rows& rows, const Column* columns, std::size_t row,
                           std::size_t last, std::size_t begin, std::size_t end,
                           Prefetcher<Vector>& prefetcher) {
        char* places[of_tile];
        for (std::size_t i = 0; i < of_tile; ++i) {
            places[i] =
                all || (i >= begin && i < end) ? columns[i].to + rows.first * width : nullptr;
        }
        for (; row < last; row += height) {
            const std::size_t from = std::min(row, rows.count - height);
            typename Vector::type lines[tiles][of_tile];
            for (std::size_t i = 0; i < tiles; ++i) {
                const char* tile = source_of(rows, from + i * Tile<Vector, width>::rows, *columns);
                Tile<Vector, width>::read(tile, rows.stride, lines[i]);
            }
            for (std::size_t k = 0; k < of_tile; ++k) {
                if (!all && (k < begin || k >= end)) continue;
                for (std::size_t i = 0; i < tiles; ++i) {
                    char* to = places[k] + from * width + i * sizeof(lines[i][k]);
                    write<Vector, stores>(to, lines[i][k]);
                }
                if constexpr (stores == Stores::prefetched) {
                    Vector::prefetch(places[k] + from * width + ahead);
                }
                if constexpr (looks_ahead) prefetcher.next();
            }
        }
    }
};

// How many of the first columns are adjacent and of the same width.
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

// For fewer columns than this, other methods are faster.
template <std::size_t width>
constexpr std::size_t fewest = width == 1   ? 5
                               : width == 2 ? 3
                               : width < 16 ? 2
                                            : 1;

constexpr std::size_t enough = fewest<1>;  // for any width

template <class Vector, std::size_t width, Stores stores>
bool try_transpose_of(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    using Tile = Tile<Vector, width>;
    constexpr bool needs_lines = stores == Stores::non_temporal;
    using Lines = Transpose<Vector, width, line / (Tile::rows * width), stores>;
    using Short = Transpose<Vector, width, 1, Stores::plain>;
    if (count < fewest<width> || rows.count < Tile::rows) return false;
    // If there are fewer columns than a tile has, what follows them is read as well.
    const Rows inside = count >= Tile::columns
                            ? rows
                            : readable(rows, *columns, end, 16, needs_lines ? Lines::height : 1);
    if (inside.count >= Lines::height) {
        Lines::copy(inside, columns, count);
    } else if (!needs_lines && inside.count >= Short::height) {
        Short::copy(inside, columns, count);
    } else {
        return false;
    }
    copy_others(rows, inside, columns, count);
    return true;
}

template <class Vector, Stores stores>
bool try_transpose(const Rows& rows, const Column* columns, std::size_t alike, const char* end) {
    switch (columns->width) {
        case 1:
            return try_transpose_of<Vector, 1, stores>(rows, columns, alike, end);
        case 2:
            return try_transpose_of<Vector, 2, stores>(rows, columns, alike, end);
        case 4:
            return try_transpose_of<Vector, 4, stores>(rows, columns, alike, end);
        case 8:
            return try_transpose_of<Vector, 8, stores>(rows, columns, alike, end);
        case 16:
            return try_transpose_of<Vector, 16, stores>(rows, columns, alike, end);
        default:
            return false;
    }
}

}  // namespace
}  // namespace tensorsplit
