// The kernels for x86-64 with AVX2; compiled with the flags for it.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "deinterleave.hpp"
#include "kernels.hpp"
#include "rows.hpp"
#include "shuffle.hpp"
#include "strips.hpp"

namespace tensorsplit {
namespace {

struct Vector256 {
    using type = __m256i;
    static constexpr std::size_t lanes = 2;

    static type load(const char* first, const char* second) {
        const auto* low_lane = reinterpret_cast<const __m128i*>(first);
        const auto* high_lane = reinterpret_cast<const __m128i*>(second);
        return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low_lane)),
                                       _mm_loadu_si128(high_lane), 1);
    }

    static void store(char* to, type value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
    }

    static constexpr bool can_stream = true;

    static type load_whole(const char* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    }

    static void stream(char* to, type value) {
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to), value);
    }

    static void finish_streams() { _mm_sfence(); }

    static void prefetch(const char* from) { _mm_prefetch(from, _MM_HINT_T0); }

    template <std::size_t width>
    static type low(type a, type b) {
        if constexpr (width == 1) return _mm256_unpacklo_epi8(a, b);
        if constexpr (width == 2) return _mm256_unpacklo_epi16(a, b);
        if constexpr (width == 4) return _mm256_unpacklo_epi32(a, b);
        if constexpr (width == 8) return _mm256_unpacklo_epi64(a, b);
    }

    template <std::size_t width>
    static type high(type a, type b) {
        if constexpr (width == 1) return _mm256_unpackhi_epi8(a, b);
        if constexpr (width == 2) return _mm256_unpackhi_epi16(a, b);
        if constexpr (width == 4) return _mm256_unpackhi_epi32(a, b);
        if constexpr (width == 8) return _mm256_unpackhi_epi64(a, b);
    }
};

struct Avx2 {
    using Vector = Vector256;

    template <bool non_temporal>
    static bool try_few(const Rows& rows, const Column* columns, std::size_t count,
                        const char* end) {
        return try_deinterleave<Vector, non_temporal>(rows, columns, count, end);
    }

    static bool try_odd(const Rows& rows, const Column* columns, std::size_t count,
                        const char* end) {
        if (!Shuffles::fit(rows, *columns) || rows.count < 2 * group) return false;
        if (count == 1 && columns->width % 4 == 0) return false;  // the compiler vectorises that
        thread_local Shuffles shuffles;
        shuffles.prepare(columns->width, rows.stride);
        // Few enough rows for all columns to read them from the first-level cache.
        const auto apart = static_cast<std::size_t>(std::abs(rows.stride));
        const std::size_t together = near_bytes / (group * apart) * group;
        for (std::size_t row = 0; row < rows.count; row += together) {
            const Rows some = some_of(rows, row, std::min(together, rows.count - row));
            for (std::size_t i = 0; i < count; ++i) {
                const Rows inside = readable(some, columns[i], end, shuffles.reach(), group);
                shuffles.copy<Vector>(source_of(inside, 0, columns[i]), inside.count / group,
                                      target_of(inside, 0, columns[i]));
                copy_others(some, inside, columns + i, 1);
            }
        }
        return true;
    }

  private:
    static constexpr std::size_t group = 2 * Shuffles::rows;
    static constexpr std::size_t near_bytes = 8 * 1024;
};

}  // namespace

const Kernels avx2 = {"avx2", copy_rows<Avx2>, Vector256::finish_streams};

}  // namespace tensorsplit
