#include "blocks.hpp"

#include <cstring>
#include <exception>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define TENSORSPLIT_MAPS
#endif

namespace tensorsplit {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t large_from = std::size_t{4} << 20;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// Rounded up by at most an eighth, so that parts of about the same size share blocks.
std::size_t size_class(std::size_t bytes) {
    std::size_t step = alignment;
    while (step <= (bytes - 1) / 16) step *= 2;
    return (bytes + step - 1) / step * step;
}

#ifdef TENSORSPLIT_MAPS
// A mapping of its own, so that its pages are returned to the system when it is released; private,
// so that a child of fork gets its own.
char* map(std::size_t size) {
    const std::size_t whole = size + huge_page;
    void* got = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) throw std::bad_alloc();
    char* start = static_cast<char*>(got);
    const std::size_t before =
        (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
    if (before != 0) munmap(start, before);
    munmap(start + before + size, whole - before - size);
#ifdef MADV_HUGEPAGE
    madvise(start + before, size, MADV_HUGEPAGE);  // ignored where there are none
#endif
    return start + before;
}
#endif

Block allocate(std::size_t size) {
#ifdef TENSORSPLIT_MAPS
    if (size >= large_from) return {map(size), size};
#endif
    return {static_cast<char*>(::operator new(size, std::align_val_t{alignment})), size};
}

}  // namespace

void release(const Block& block) noexcept {
    if (block.begin == nullptr) return;
#ifdef TENSORSPLIT_MAPS
    if (block.size >= large_from) {
        munmap(block.begin, block.size);
        return;
    }
#endif
    ::operator delete(block.begin, std::align_val_t{alignment});
}

Block Blocks::take(std::size_t bytes) {
    const std::size_t size = size_class(bytes);
    const auto found = by_size_.find(size);
    Block block;
    if (found != by_size_.end() && !found->second.empty()) {
        block = found->second.back().block;
        found->second.pop_back();
        idle_ -= size;
    } else {
        try {
            block = allocate(size);
        } catch (const std::bad_alloc&) {
            clear();
            block = allocate(size);
        }
    }
    in_use_ += size;
    return block;
}

void Blocks::give_back(const Block& block) noexcept {
    in_use_ -= block.size;
    try {
        by_size_[block.size].push_back({clock_++, block});
    } catch (const std::exception&) {
        return release(block);
    }
    idle_ += block.size;
    while (idle_ > most_idle_) release_oldest();
}

void Blocks::release_oldest() noexcept {
    std::deque<Idle>* oldest = nullptr;
    for (auto& [size, blocks] : by_size_) {
        if (blocks.empty()) continue;
        if (oldest == nullptr || blocks.front().since < oldest->front().since) oldest = &blocks;
    }
    idle_ -= oldest->front().block.size;
    release(oldest->front().block);
    oldest->pop_front();
}

void Blocks::clear() noexcept {
    for (const auto& [size, blocks] : by_size_) {
        for (const Idle& each : blocks) release(each.block);
    }
    by_size_.clear();
    idle_ = 0;
}

void Blocks::fill(unsigned char byte) noexcept {
    for (const auto& [size, blocks] : by_size_) {
        for (const Idle& each : blocks) std::memset(each.block.begin, byte, size);
    }
}

}  // namespace tensorsplit
