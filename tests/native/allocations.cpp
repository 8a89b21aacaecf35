// Loaded before all other libraries: allocations of C++ that fail when they are asked to.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <system_error>

namespace {

std::atomic<long> left{-1};
std::atomic<int> kind{0};

void count() {
    if (left.load() < 0 || left.fetch_sub(1) != 0) return;
    if (kind == 1) throw std::length_error("an injected length_error");
    if (kind == 2) throw std::system_error(std::make_error_code(std::errc::io_error));
    throw std::bad_alloc();
}

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The allocation after so many others throws, once: 0 for a bad_alloc, 1 for a length_error, 2 for
// a system_error.
extern "C" void fail_after(long allocations, int error) {
    kind = error;
    left = allocations;
}

// Whether it did, or no allocation is to fail.
extern "C" int has_failed() { return left.load() < 0 ? 1 : 0; }

void* operator new(std::size_t size) {
    static const auto allocate = next<void* (*)(std::size_t)>("_Znwm");
    count();
    return allocate(size);
}

void* operator new(std::size_t size, std::align_val_t alignment) {
    static const auto allocate =
        next<void* (*)(std::size_t, std::align_val_t)>("_ZnwmSt11align_val_t");
    count();
    return allocate(size, alignment);
}
