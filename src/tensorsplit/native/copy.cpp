#include "copy.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu.hpp"
#include "pool.hpp"

namespace tensorsplit {
namespace {

// Below this, waking a thread takes longer than it saves.
constexpr std::size_t worth_a_thread = 512 * 1024;

// What a thread takes at a time: enough that taking it costs nothing, and little enough that all
// are done at about the same time.
constexpr std::size_t smallest_piece = 128 * 1024;
constexpr std::size_t largest_piece = 2 * 1024 * 1024;
constexpr std::size_t pieces_each = 8;

// From here on, parts are written around the cache.
constexpr std::size_t usually_streamed = 4 * 1024 * 1024;

std::atomic<std::size_t> streamed_from{streams_are_fast() ? usually_streamed : SIZE_MAX};

struct Task {
    const Job* job;
    Piece piece;
};

std::size_t bytes_of(const Cut& cut) {
    std::size_t bytes = cut.width;
    for (const Dimension& dimension : cut.dimensions) bytes *= dimension.extent;
    return bytes;
}

}  // namespace

void stream_from(std::size_t bytes) { streamed_from.store(bytes); }

void copy_parts(const Kernels& kernels, const Cut& cut) {
    const std::size_t bytes = bytes_of(cut);
    const auto jobs = make_jobs(cut);
    const Way way{kernels, bytes >= streamed_from.load(std::memory_order_relaxed)};
    if (bytes < worth_a_thread || threads() == 1) {
        for (const auto& job : jobs) job->run(way, job->whole());
        if (way.around) kernels.finish();
        return;
    }
    const std::size_t share = bytes / (threads() * pieces_each);
    const std::size_t piece_bytes = std::clamp(share, smallest_piece, largest_piece);
    std::vector<Task> tasks;
    for (const auto& job : jobs) {
        for (const Piece& piece : job->pieces(piece_bytes)) tasks.push_back({job.get(), piece});
    }
    run_parallel(tasks.size(), [&](std::size_t index) {
        tasks[index].job->run(way, tasks[index].piece);
        if (way.around) kernels.finish();
    });
}

}  // namespace tensorsplit
