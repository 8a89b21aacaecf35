#include "copy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pool.hpp"
#include "ways.hpp"

namespace tensorsplit {
namespace {

// The unit of work of a thread: large enough that taking one costs next to nothing, small enough
// that all threads finish at about the same time.
constexpr std::size_t smallest_piece = 64 * 1024;
constexpr std::size_t largest_piece = 2 * 1024 * 1024;
constexpr std::size_t pieces_each = 8;

struct Task {
    const Job* job;
    Piece piece;
};

std::size_t bytes_of(const Split& split) {
    std::size_t bytes = split.width;
    for (const Dimension& dimension : split.dimensions) bytes *= dimension.extent;
    return bytes;
}

// Whether as many threads as the way has were free.
bool copy_by(const Way& way, const Kernels& kernels, const Jobs& jobs, std::size_t bytes) {
    const Mode mode{kernels, way.stores};
    const bool is_past_cache = way.stores == Stores::non_temporal;
    if (way.threads == 1) {
        for (const auto& job : jobs) {
            for (const Piece& piece : job->pieces(SIZE_MAX)) job->run(mode, piece);
        }
        if (is_past_cache) kernels.finish();
        return true;
    }
    const std::size_t share = bytes / (way.threads * pieces_each);
    const std::size_t piece_bytes = std::clamp(share, smallest_piece, largest_piece);
    std::vector<Task> tasks;
    for (const auto& job : jobs) {
        for (const Piece& piece : job->pieces(piece_bytes)) tasks.push_back({job.get(), piece});
    }
    return run_parallel(tasks.size(), way.threads, [&](std::size_t index) {
        tasks[index].job->run(mode, tasks[index].piece);
        if (is_past_cache) kernels.finish();
    });
}

void run(const Kernels& kernels, const Jobs& jobs, std::size_t bytes) {
    if (jobs.empty()) return;
    const Kind kind = jobs.front()->kind();
    const Way way = choose_way(kind, bytes);
    const auto begin = std::chrono::steady_clock::now();
    if (copy_by(way, kernels, jobs, bytes)) {
        report_time(kind, bytes, way, std::chrono::steady_clock::now() - begin);
    }
}

}  // namespace

void copy_parts(const Kernels& kernels, const Split& split) {
    run(kernels, make_jobs(split), bytes_of(split));
}

void join_parts(const Kernels& kernels, Join join) {
    const std::size_t bytes = join.bytes;
    run(kernels, make_jobs(std::move(join)), bytes);
}

}  // namespace tensorsplit
