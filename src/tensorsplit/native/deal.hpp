// Copying a few columns that are all of their rows, by byte shuffles (AVX2).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

// As many vectors of 16 bytes as there are columns are some whole rows, and 16 bytes of each
// column. These are the union of the source's vectors, each with its bytes moved to their places
// and all others cleared.
template <std::size_t columns>
class Deal {
  public:
    explicit Deal(std::size_t width) : rows_(2 * 16 / width) {
        std::memset(places_, 0x80, sizeof places_);  // no byte
        for (std::size_t byte = 0; byte < 16 * columns; ++byte) {
            const std::size_t element = byte / width;
            const std::size_t place = element / columns * width + byte % width;
            std::uint8_t* places = places_[element % columns][byte / 16];
            places[place] = places[place + 16] = static_cast<std::uint8_t>(byte % 16);
        }
    }

    // Rows that are copied at a time: a lane of each vector is for the first half of them.
    std::size_t rows() const { return rows_; }

    void copy(const char* from, std::size_t groups, char* const* to) const {
        // Held here, where the compiler knows that no byte that is stored can change them.
        char* places[columns];
        __m256i masks[columns][columns];
        for (std::size_t i = 0; i < columns; ++i) {
            places[i] = to[i];
            for (std::size_t k = 0; k < columns; ++k) masks[i][k] = mask(i, k);
        }
        for (std::size_t group = 0; group < groups; ++group) {
            __m256i source[columns];
            for (std::size_t i = 0; i < columns; ++i) {
                source[i] = join(from + 16 * i, from + 16 * (columns + i));
            }
            for (std::size_t i = 0; i < columns; ++i) {
                __m256i joined = _mm256_shuffle_epi8(source[0], masks[i][0]);
                for (std::size_t k = 1; k < columns; ++k) {
                    joined = _mm256_or_si256(joined, _mm256_shuffle_epi8(source[k], masks[i][k]));
                }
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(places[i]), joined);
                places[i] += 32;
            }
            from += 32 * columns;
        }
    }

  private:
    __m256i mask(std::size_t column, std::size_t vector) const {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(places_[column][vector]));
    }

    static __m256i join(const char* low, const char* high) {
        const auto* low_lane = reinterpret_cast<const __m128i*>(low);
        const auto* high_lane = reinterpret_cast<const __m128i*>(high);
        return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low_lane)),
                                       _mm_loadu_si128(high_lane), 1);
    }

    std::size_t rows_;
    alignas(32) std::uint8_t places_[columns][columns][32];
};

template <std::size_t columns>
void deal(const Rows& rows, const Column* to) {
    const Deal<columns> pattern(to->width);
    const std::size_t groups = rows.count / pattern.rows();
    char* places[columns];
    for (std::size_t i = 0; i < columns; ++i) places[i] = place_of(rows, 0, to[i]);
    pattern.copy(source_of(rows, 0, *to), groups, places);
    const std::size_t done = groups * pattern.rows();
    const Rows rest = some_of(rows, done, rows.count - done);
    for (std::size_t i = 0; i < columns; ++i) copy_column(rest, to[i]);
}

// Adjacent columns of one width.
inline bool try_deal(const Rows& rows, const Column* columns, std::size_t count) {
    const std::size_t width = columns->width;
    const std::size_t most = width == 1 ? 6 : width == 2 ? 3 : 0;  // from there on, transposes are
    if (count > most || rows.count < 64) return false;             // faster, and for few rows
    if (rows.stride != static_cast<std::ptrdiff_t>(count * width)) return false;
    switch (count) {
        case 2:
            deal<2>(rows, columns);
            return true;
        case 3:
            deal<3>(rows, columns);
            return true;
        case 4:
            deal<4>(rows, columns);
            return true;
        case 5:
            deal<5>(rows, columns);
            return true;
        case 6:
            deal<6>(rows, columns);
            return true;
        default:
            return false;
    }
}

}  // namespace
}  // namespace tensorsplit
