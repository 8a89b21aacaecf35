// Memory that is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace tensorsplit {

// Aligned to 64 bytes; from 4 MiB on to huge pages, which it has where the system knows them.
struct Block {
    char* begin = nullptr;
    std::size_t size = 0;
};

// Give the memory of a block, or of none, back to the system.
void release(const Block& block) noexcept;

// Blocks that wait for their next use. Python's lock guards them: nothing here lets it go, or runs
// anything of Python's, in which the garbage collector could give back another block.
class Blocks {
  public:
    // `most_idle`: how many bytes are kept at most. What comes back beyond that is released, the
    // longest unused first.
    explicit Blocks(std::size_t most_idle) : most_idle_(most_idle) {}
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() { clear(); }

    // A block of that many bytes or an eighth more; std::bad_alloc if there is none to be had.
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
