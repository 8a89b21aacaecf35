// Memory that is reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace tensorsplit {

// Aligned to 64 bytes; from 4 MiB on to huge pages, and made of them where the system can.
struct Block {
    char* begin = nullptr;
    std::size_t size = 0;
};

// Return the memory of a block to the system; nothing for an empty block.
void release(const Block& block) noexcept;

// Blocks that wait for their next use. The GIL guards them: nothing here releases it, or runs
// Python code, in which the garbage collector could return another block.
class Blocks {
  public:
    // `most_idle`: how many bytes are kept at most. Beyond that, blocks are released, the longest
    // unused first.
    explicit Blocks(std::size_t most_idle) : most_idle_(most_idle) {}
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() { clear(); }

    // A block of that many bytes or up to an eighth more; throws std::bad_alloc.
    Block take(std::size_t bytes);
    void give_back(const Block& block) noexcept;

    // Release all that is idle.
    void clear() noexcept;

    // Overwrite all that is idle; for tests.
    void fill(unsigned char byte) noexcept;

    std::size_t idle() const { return idle_; }
    std::size_t in_use() const { return in_use_; }

  private:
    struct Idle {
        std::uint64_t since;
        Block block;
    };

    void release_oldest() noexcept;

    std::size_t most_idle_, idle_ = 0, in_use_ = 0;
    std::uint64_t clock_ = 0;
    std::unordered_map<std::size_t, std::deque<Idle>> by_size_;  // in each, the oldest in front
};

}  // namespace tensorsplit
