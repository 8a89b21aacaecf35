// Copying a few columns that are all of their rows, by byte shuffles (AVX2).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels.hpp"
#include "lines.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

// As many vectors of 16 bytes as there are columns are some whole rows, and 16 bytes of each
// column. These are the union of the source's vectors, each with its bytes moved to their places
// and all others cleared.
template <std::size_t columns, std::size_t width>
class Deal {
  public:
    // Rows that are copied at a time, a lane of each vector for each half of them.
    static constexpr std::size_t rows = 2 * 16 / width;

    // `halves` times so many rows go to each of the places.
    template <class Vector, bool around, std::size_t halves>
    static void copy(const char* from, char* const* to, std::size_t at) {
        __m256i source[halves][columns];
        for (std::size_t half = 0; half < halves; ++half) {
            for (std::size_t i = 0; i < columns; ++i) {
                source[half][i] = Vector::load(from + 16 * i, from + 16 * (columns + i));
            }
            from += 32 * columns;
        }
        for (std::size_t i = 0; i < columns; ++i) {
            for (std::size_t half = 0; half < halves; ++half) {
                write<Vector, around>(to[i] + at + 32 * half, join(source[half], i));
            }
        }
    }

  private:
    struct Patterns {
        alignas(32) std::uint8_t places[columns][columns][32];  // which byte comes to each place
    };

    static constexpr Patterns make_patterns() {
        Patterns patterns{};
        for (auto& of_column : patterns.places) {
            for (auto& of_vector : of_column) {
                for (std::uint8_t& place : of_vector) place = 0x80;  // no byte
            }
        }
        for (std::size_t byte = 0; byte < 16 * columns; ++byte) {
            const std::size_t element = byte / width;
            const std::size_t place = element / columns * width + byte % width;
            std::uint8_t* places = patterns.places[element % columns][byte / 16];
            places[place] = places[place + 16] = static_cast<std::uint8_t>(byte % 16);
        }
        return patterns;
    }

    static constexpr Patterns patterns = make_patterns();

    static __m256i join(const __m256i* source, std::size_t column) {
        __m256i joined = _mm256_shuffle_epi8(source[0], pattern(column, 0));
        for (std::size_t i = 1; i < columns; ++i) {
            const __m256i moved = _mm256_shuffle_epi8(source[i], pattern(column, i));
            joined = _mm256_or_si256(joined, moved);
        }
        return joined;
    }

    static __m256i pattern(std::size_t column, std::size_t vector) {
        const std::uint8_t* places = patterns.places[column][vector];
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(places));
    }
};

template <class Vector, bool around, std::size_t columns, std::size_t width>
void deal(const Rows& rows, const Column* to) {
    using Deal = Deal<columns, width>;
    constexpr std::size_t halves = 2, together = halves * Deal::rows;  // lines of the cache
    // Held here, where the compiler knows that no byte that is stored can change them.
    char* places[columns];
    for (std::size_t i = 0; i < columns; ++i) places[i] = place_of(rows, 0, to[i]);
    const char* from = source_of(rows, 0, *to);
    const std::size_t groups = rows.count / together;
    for (std::size_t group = 0; group < groups; ++group) {
        Deal::template copy<Vector, around, halves>(from, places, group * line);
        from += line * columns;
    }
    copy_others(rows, some_of(rows, 0, groups * together), to, columns);
}

// Adjacent columns of one width.
template <class Vector, bool around>
bool try_deal(const Rows& rows, const Column* columns, std::size_t count) {
    if (rows.count < 64) return false;
    const std::size_t width = columns->width;
    if (rows.stride != static_cast<std::ptrdiff_t>(count * width)) return false;
    if (width == 1) {
        switch (count) {
            case 2:
                deal<Vector, around, 2, 1>(rows, columns);
                return true;
            case 3:
                deal<Vector, around, 3, 1>(rows, columns);
                return true;
            case 4:
                deal<Vector, around, 4, 1>(rows, columns);
                return true;
            case 5:
                deal<Vector, around, 5, 1>(rows, columns);
                return true;
            case 6:
                deal<Vector, around, 6, 1>(rows, columns);
                return true;
            default:
                return false;
        }
    }
    if (width == 2 && count == 2) {
        deal<Vector, around, 2, 2>(rows, columns);
        return true;
    }
    if (width == 2 && count == 3) {
        deal<Vector, around, 3, 2>(rows, columns);
        return true;
    }
    return false;
}

}  // namespace
}  // namespace tensorsplit
