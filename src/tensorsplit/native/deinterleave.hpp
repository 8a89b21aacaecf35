// Copying rows of a few columns by byte shuffles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.hpp"
#include "lines.hpp"
#include "strips.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

// As many vectors of 16 bytes as there are columns hold some whole rows, and 16 bytes of each
// column. The vector of a column is the bitwise OR of the source's vectors, each shuffled so that
// the bytes of the column are in their places and all others are zero.
template <std::size_t columns, std::size_t width>
class Deinterleave {
  public:
    // Rows per step: a lane of each vector holds its share of them.
    static constexpr std::size_t rows = Vector::size / width;

    // Copy `vectors` times `rows` rows to each of the targets that is not null.
    template <Stores stores, std::size_t vectors>
    static void copy(const char* from, char* const* to, std::size_t at) {
        Vector::type source[vectors][columns];
        for (std::size_t k = 0; k < vectors; ++k) {
            for (std::size_t i = 0; i < columns; ++i) {
                source[k][i] = Vector::load(from + 16 * i, 16 * columns);
            }
            from += Vector::size * columns;
        }
        for (std::size_t i = 0; i < columns; ++i) {
            if (to[i] == nullptr) continue;
            for (std::size_t k = 0; k < vectors; ++k) {
                write<Vector, stores>(to[i] + at + Vector::size * k, join(source[k], i));
            }
        }
    }

  private:
    struct Patterns {
        // The source byte of each place.
        alignas(Vector::size) std::uint8_t places[columns][columns][Vector::size];
    };

    static constexpr Patterns make_patterns() {
        Patterns patterns{};
        for (auto& of_column : patterns.places) {
            for (auto& of_vector : of_column) {
                for (std::uint8_t& place : of_vector) place = 0x80;  // zero
            }
        }
        for (std::size_t byte = 0; byte < 16 * columns; ++byte) {
            const std::size_t element = byte / width;
            const std::size_t place = element / columns * width + byte % width;
            std::uint8_t* places = patterns.places[element % columns][byte / 16];
            for (std::size_t lane = 0; lane < Vector::lanes; ++lane) {
                places[16 * lane + place] = static_cast<std::uint8_t>(byte % 16);
            }
        }
        return patterns;
    }

    static constexpr Patterns patterns = make_patterns();

    static Vector::type join(const Vector::type* source, std::size_t column) {
        Vector::type joined = Vector::shuffle(source[0], pattern(column, 0));
        for (std::size_t i = 1; i < columns; ++i) {
            joined |= Vector::shuffle(source[i], pattern(column, i));
        }
        return joined;
    }

    static Vector::type pattern(std::size_t column, std::size_t vector) {
        return Vector::load_whole(patterns.places[column][vector]);
    }
};

// `count` is the number of all columns, or 1 if only one of them is wanted.
template <class Vector, Stores stores, std::size_t columns, std::size_t width>
bool deinterleave(const Rows& rows, const Column* to, std::size_t count, const char* end) {
    using Deinterleave = Deinterleave<columns, width>;
    constexpr std::size_t vectors = line / Vector::size, together = vectors * Deinterleave::rows;
    // What follows the last strip of the only column may lie outside the source.
    const Rows inside = readable(rows, *to, end, rows.stride, together);
    // Local copies: the compiler knows that no store can change them.
    char* places[columns] = {};
    for (std::size_t i = 0; i < count; ++i) places[i] = target_of(inside, 0, to[i]);
    const char* from = source_of(inside, 0, *to);
    for (std::size_t group = 0; group < inside.count / together; ++group) {
        Deinterleave::template copy<stores, vectors>(from, places, group * line);
        from += line * columns;
    }
    copy_others(rows, inside, to, count);
    return true;
}

// For more columns, transposes are faster.
template <class Vector, Stores stores, std::size_t width>
bool try_deinterleave_of(const Rows& rows, const Column* columns, std::size_t count,
                         const char* end) {
    switch (static_cast<std::size_t>(rows.stride) / width) {
        case 2:
            return deinterleave<Vector, stores, 2, width>(rows, columns, count, end);
        case 3:
            return deinterleave<Vector, stores, 3, width>(rows, columns, count, end);
        case 4:
            return deinterleave<Vector, stores, 4, width>(rows, columns, count, end);
        case 5:
            return deinterleave<Vector, stores, 5, width>(rows, columns, count, end);
        case 6:
            return width <= 2 && deinterleave<Vector, stores, 6, width>(rows, columns, count, end);
        case 7:
            return width == 1 && deinterleave<Vector, stores, 7, width>(rows, columns, count, end);
        default:
            return false;
    }
}

// Adjacent columns of one width that make up whole rows, or one column of such rows.
template <class Vector, Stores stores>
bool try_deinterleave(const Rows& rows, const Column* columns, std::size_t count, const char* end) {
    const std::size_t width = columns->width;
    const auto pitch = static_cast<std::size_t>(rows.stride);
    if (rows.count < 64 || rows.stride <= 0 || pitch % width != 0) return false;
    if (count != 1 && count != pitch / width) return false;
    switch (width) {
        case 1:
            return try_deinterleave_of<Vector, stores, 1>(rows, columns, count, end);
        case 2:
            return try_deinterleave_of<Vector, stores, 2>(rows, columns, count, end);
        case 4:
            return try_deinterleave_of<Vector, stores, 4>(rows, columns, count, end);
        case 8:
            return try_deinterleave_of<Vector, stores, 8>(rows, columns, count, end);
        default:
            return false;
    }
}

}  // namespace
}  // namespace tensorsplit
