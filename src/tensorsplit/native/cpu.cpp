#include "cpu.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#ifdef TENSORSPLIT_AVX2
#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
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

#ifdef __linux__
// From what the system says of one of the processor's caches; 0 if there is no such cache.
std::size_t read_cache(int index) {
    char path[64], unit = 0;
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    std::FILE* file = std::fopen(path, "r");
    if (file == nullptr) return 0;
    unsigned long size = 0;
    if (std::fscanf(file, "%lu%c", &size, &unit) < 1) size = 0;
    std::fclose(file);
    return size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
}
#endif

Cache find_last_level_cache() {
    Cache found{0, ""};
#ifdef __linux__
    for (int index = 0; index < 8; ++index) {
        found = {std::max(found.bytes, read_cache(index)), "/sys/devices/system/cpu"};
    }
#endif
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (found.bytes == 0) {
        const long largest =
            std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
        found = {static_cast<std::size_t>(std::max(largest, 0L)), "sysconf"};
    }
#endif
#ifdef __APPLE__
    for (const char* name : {"hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"}) {
        std::uint64_t size = 0;
        std::size_t length = sizeof size;
        if (found.bytes == 0 && sysctlbyname(name, &size, &length, nullptr, 0) == 0) {
            found = {static_cast<std::size_t>(size), name};
        }
    }
#endif
    return found.bytes != 0 ? found : Cache{std::size_t{32} << 20, "assumed"};
}

// Found as the module is loaded, not in the first copy: a fork while a thread has begun that would
// leave a child that waits for that thread for ever.
const Cache cache = find_last_level_cache();

}  // namespace

Cache last_level_cache() { return cache; }

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
