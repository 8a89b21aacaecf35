#include "cpu.hpp"

#include <cstring>

#ifdef TENSORSPLIT_AVX2
#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

namespace tensorsplit {
namespace {

#ifdef TENSORSPLIT_AVX2
bool has_avx2() {
#ifdef _MSC_VER
    int words[4];
    __cpuid(words, 0);
    if (words[0] < 7) return false;
    __cpuid(words, 1);
    const bool saves = (words[2] & (1 << 27)) != 0;     // the system saves wide registers,
    if (!saves || (_xgetbv(0) & 6) != 6) return false;  // those of SSE and AVX
    __cpuidex(words, 7, 0);
    return (words[1] & (1 << 5)) != 0;
#else
    return __builtin_cpu_supports("avx2") != 0;
#endif
}
#endif

bool has_fast_short_moves() {
#if !defined(TENSORSPLIT_AVX2)
    return false;
#elif defined(_MSC_VER)
    int words[4];
    __cpuid(words, 0);
    if (words[0] < 7) return false;
    __cpuidex(words, 7, 0);
    return (words[3] & (1 << 4)) != 0;
#else
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & (1u << 4)) != 0;
#endif
}

}  // namespace

bool non_temporal_is_fast() {
    static const bool fast = has_fast_short_moves();
    return fast;
}

const Kernels& best_kernels() {
#ifdef TENSORSPLIT_AVX2
    if (has_avx2()) return shuffling;
#elif defined(TENSORSPLIT_VECTORS)
    return shuffling;
#endif
    return baseline;
}

const Kernels* find_kernels(const char* name) {
    if (std::strcmp(name, baseline.name) == 0) return &baseline;
    const Kernels& best = best_kernels();
    return std::strcmp(name, best.name) == 0 ? &best : nullptr;
}

}  // namespace tensorsplit
