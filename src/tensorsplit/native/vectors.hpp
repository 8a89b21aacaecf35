// Vector registers by the compiler's own vectors (GCC, clang), which are the same for every
// processor, with what those lack by its intrinsics. Included by the instruction-set specific files
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef TENSORSPLIT_VECTORS
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#endif

namespace tensorsplit {
namespace {

#ifdef TENSORSPLIT_VECTORS

template <std::size_t width>
struct Unsigned;
template <>
struct Unsigned<1> {
    using type = std::uint8_t;
};
template <>
struct Unsigned<2> {
    using type = std::uint16_t;
};
template <>
struct Unsigned<4> {
    using type = std::uint32_t;
};
template <>
struct Unsigned<8> {
    using type = std::uint64_t;
};

// So many bytes at a time.
template <std::size_t bytes>
struct Register {
    static constexpr std::size_t size = bytes;
    typedef std::uint8_t type __attribute__((vector_size(size)));

    static type load_whole(const void* from) {
        type value;
        std::memcpy(&value, from, size);
        return value;
    }

    static void store(char* to, type value) { std::memcpy(to, &value, size); }

#if defined(__AVX2__) || defined(__aarch64__)
    static constexpr bool can_shuffle = true;

    // Byte `places[i]` of the same lane for each byte i; zero where that is 0x80.
    static type shuffle(type value, type places) {
#ifdef __aarch64__
        return reinterpret_cast<type>(
            vqtbl1q_u8(reinterpret_cast<uint8x16_t>(value), reinterpret_cast<uint8x16_t>(places)));
#else
        if constexpr (size == 32) {
            return reinterpret_cast<type>(_mm256_shuffle_epi8(reinterpret_cast<__m256i>(value),
                                                              reinterpret_cast<__m256i>(places)));
        } else {
            return reinterpret_cast<type>(_mm_shuffle_epi8(reinterpret_cast<__m128i>(value),
                                                           reinterpret_cast<__m128i>(places)));
        }
#endif
    }
#else
    static constexpr bool can_shuffle = false;
#endif
};

using Bytes = Register<16>;

#ifdef __AVX2__
constexpr std::size_t widest = 32;
#else
constexpr std::size_t widest = 16;
#endif

// As wide as the flags of the file allow.
struct Vector : Register<widest> {
    static constexpr std::size_t lanes = size / 16;

    // Lane number i is read from `from + i * pitch`.
    static type load(const void* from, [[maybe_unused]] std::ptrdiff_t pitch) {
#ifdef __AVX2__
        const auto* low = static_cast<const __m128i*>(from);
        const char* other = static_cast<const char*>(from) + pitch;
        const auto* high = reinterpret_cast<const __m128i*>(other);
        return reinterpret_cast<type>(_mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1));
#else
        return load_whole(from);
#endif
    }

    // Lane number i is written to `to + i * pitch`.
    static void store_lanes(char* to, [[maybe_unused]] std::size_t pitch, type value) {
#ifdef __AVX2__
        const auto lanes = reinterpret_cast<__m256i>(value);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(lanes));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + pitch),
                         _mm256_extracti128_si256(lanes, 1));
#else
        store(to, value);
#endif
    }

#ifdef __x86_64__
    static constexpr bool can_stream = true;

    static void stream(char* to, type value) {
#ifdef __AVX2__
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(value));
#else
        _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(value));
#endif
    }

    static void finish_streams() { _mm_sfence(); }
#else
    static constexpr bool can_stream = false;
    static void stream(char* to, type value) { store(to, value); }
    static void finish_streams() {}
#endif

    static void prefetch(const char* from) { __builtin_prefetch(from); }

    // The elements of the lower or upper halves of the lanes of two vectors, interleaved.
    template <std::size_t width>
    static type low(type a, type b) {
        return interleave<width, 0>(a, b, std::make_index_sequence<size / width>());
    }

    template <std::size_t width>
    static type high(type a, type b) {
        return interleave<width, 8 / width>(a, b, std::make_index_sequence<size / width>());
    }

  private:
    template <std::size_t width, std::size_t first, std::size_t... place>
    static type interleave(type a, type b, std::index_sequence<place...>) {
        using Element = typename Unsigned<width>::type;
        typedef Element Elements __attribute__((vector_size(size)));
        constexpr std::size_t count = size / width, of_lane = 16 / width;
        const auto from_a = reinterpret_cast<Elements>(a), from_b = reinterpret_cast<Elements>(b);
#ifdef __clang__
        const Elements mixed = __builtin_shufflevector(
            from_a, from_b,
            (place % 2 * count + place / of_lane * of_lane + place % of_lane / 2 + first)...);
#else
        const Elements mixed = __builtin_shuffle(
            from_a, from_b,
            Elements{static_cast<Element>(place % 2 * count + place / of_lane * of_lane +
                                          place % of_lane / 2 + first)...});
#endif
        return reinterpret_cast<type>(mixed);
    }
};

#else

// For other compilers; written so that they recognise what their processor can interleave.
struct Vector {
    struct type {
        char bytes[16];
    };
    static constexpr std::size_t size = 16, lanes = 1;

    static type load(const void* from, std::ptrdiff_t) { return load_whole(from); }

    static type load_whole(const void* from) {
        type value;
        std::memcpy(value.bytes, from, 16);
        return value;
    }

    static void store(char* to, const type& value) { std::memcpy(to, value.bytes, 16); }
    static void store_lanes(char* to, std::size_t, const type& value) { store(to, value); }

    static constexpr bool can_shuffle = false;
    static constexpr bool can_stream = false;
    static void stream(char* to, const type& value) { store(to, value); }
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

using Bytes = Vector;

#endif

}  // namespace
}  // namespace tensorsplit
