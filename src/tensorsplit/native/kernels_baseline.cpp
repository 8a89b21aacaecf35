// The kernels for every processor; compiled with the compiler's own flags.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels.hpp"
#include "rows.hpp"
#include "strips.hpp"

#ifdef TENSORSPLIT_SSE2
#include <emmintrin.h>
#endif

namespace tensorsplit {
namespace {

#ifdef TENSORSPLIT_SSE2

struct Vector128 {
    using type = __m128i;
    static constexpr std::size_t lanes = 1;

    static type load(const char* from, const char*) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    }

    static void store(char* to, type value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
    }

    static constexpr bool can_stream = true;

    static type load_whole(const char* from) { return load(from, from); }

    static void stream(char* to, type value) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to), value);
    }

    static void finish_streams() { _mm_sfence(); }

    static void prefetch(const char* from) { _mm_prefetch(from, _MM_HINT_T0); }

    template <std::size_t width>
    static type low(type a, type b) {
        if constexpr (width == 1) return _mm_unpacklo_epi8(a, b);
        if constexpr (width == 2) return _mm_unpacklo_epi16(a, b);
        if constexpr (width == 4) return _mm_unpacklo_epi32(a, b);
        if constexpr (width == 8) return _mm_unpacklo_epi64(a, b);
    }

    template <std::size_t width>
    static type high(type a, type b) {
        if constexpr (width == 1) return _mm_unpackhi_epi8(a, b);
        if constexpr (width == 2) return _mm_unpackhi_epi16(a, b);
        if constexpr (width == 4) return _mm_unpackhi_epi32(a, b);
        if constexpr (width == 8) return _mm_unpackhi_epi64(a, b);
    }
};

#else

// Written so that compilers recognise the interleaving instructions of their processor.
struct Vector128 {
    struct type {
        char bytes[16];
    };
    static constexpr std::size_t lanes = 1;

    static type load(const char* from, const char*) {
        type value;
        std::memcpy(value.bytes, from, 16);
        return value;
    }

    static void store(char* to, type value) { std::memcpy(to, value.bytes, 16); }

    static constexpr bool can_stream = false;

    static type load_whole(const char* from) { return load(from, from); }
    static void stream(char* to, type value) { store(to, value); }
    static void finish_streams() {}
    static void prefetch(const char*) {}

    template <std::size_t width>
    static type low(const type& a, const type& b) {
        return interleave<width>(a.bytes, b.bytes);
    }

    template <std::size_t width>
    static type high(const type& a, const type& b) {
        return interleave<width>(a.bytes + 8, b.bytes + 8);
    }

  private:
    template <std::size_t width>
    static type interleave(const char* a, const char* b) {
        type mixed;
        for (std::size_t i = 0; i < 8; i += width) {
            std::memcpy(mixed.bytes + 2 * i, a + i, width);
            std::memcpy(mixed.bytes + 2 * i + width, b + i, width);
        }
        return mixed;
    }
};

#endif

// All columns of contiguous rows in one pass, with distances known to the compiler, which has
// instructions for some of them.
template <class Element, std::size_t columns>
void deinterleave(const Rows& rows, const Column* to) {
    const char* from = source_of(rows, 0, *to);
    char* places[columns];
    for (std::size_t i = 0; i < columns; ++i) places[i] = target_of(rows, 0, to[i]);
    for (std::size_t row = 0; row < rows.count; ++row) {
        for (std::size_t i = 0; i < columns; ++i) {
            const char* element = from + (row * columns + i) * sizeof(Element);
            std::memcpy(places[i] + row * sizeof(Element), element, sizeof(Element));
        }
    }
}

template <class Element>
bool try_deinterleave(const Rows& rows, const Column* to, std::size_t columns) {
    if (rows.stride != static_cast<std::ptrdiff_t>(columns * sizeof(Element))) return false;
    switch (columns) {
        case 2:
            deinterleave<Element, 2>(rows, to);
            return true;
        case 3:
            deinterleave<Element, 3>(rows, to);
            return true;
        case 4:
            deinterleave<Element, 4>(rows, to);
            return true;
        default:
            return false;
    }
}

struct Baseline {
    using Vector = Vector128;

    template <bool>
    static bool try_few(const Rows&, const Column*, std::size_t, const char*) {
        return false;
    }

    static bool try_odd(const Rows& rows, const Column* columns, std::size_t count, const char*) {
        switch (columns->width) {
            case 1:
                return try_deinterleave<std::uint8_t>(rows, columns, count);
            case 2:
                return try_deinterleave<std::uint16_t>(rows, columns, count);
            default:
                return false;
        }
    }
};

}  // namespace

const Kernels baseline = {"baseline", copy_rows<Baseline>, Vector128::finish_streams};

}  // namespace tensorsplit
