#include "ways.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "cpu.hpp"
#include "pool.hpp"

namespace tensorsplit {
namespace {

// From these sizes on, measuring takes less than it may save, all threads are the first guess, and
// other stores than plain ones are worth a try.
constexpr std::size_t worth_measuring = 128 * 1024;
constexpr std::size_t worth_a_thread = 512 * 1024;
constexpr std::size_t worth_other_stores = 1024 * 1024;

// A trial compares the way in use with another one: some copies by each, twice. The first copy
// after a change finds the caches as the other way left them, and does not count; of the others the
// fastest does, since whatever disturbs a copy makes it slower.
constexpr unsigned copies_in_turn = 3;
constexpr unsigned turns = 4;
constexpr double clearly_slower = 1.3;  // ends a trial after the first two turns
constexpr double clearly_faster = 0.9;

// After all trials have been lost, how many copies until the next.
constexpr std::size_t shortest_rest = 128;
constexpr std::size_t longest_rest = 16384;

std::atomic<std::size_t> fixed_from{0};

class Contest {
  public:
    Contest(const Kind& kind, std::size_t bytes, Way guess)
        : choice_{kind, bytes, guess, guess, 0, 0, 0} {
        find_other();
    }

    const Choice& choice() const { return choice_; }

    Way next() const { return resting_ != 0 || turn() % 2 == 0 ? choice_.way : choice_.other; }

    void report(const Way& way, double time) {
        ++choice_.copies;
        if (resting_ != 0) {
            if (--resting_ == 0) find_other();
            return;
        }
        if (!(way == next())) return;  // chosen before the last turn ended
        double& least = turn() % 2 == 0 ? time_ : time_of_other_;
        if (copy_++ % copies_in_turn == 0) return;
        least = least == 0 ? time : std::min(least, time);
        const bool is_lost = copy_ == 2 * copies_in_turn && time_of_other_ > clearly_slower * time_;
        if (is_lost || copy_ == turns * copies_in_turn) end_trial();
    }

  private:
    enum Neighbour { next_stores, stores_after, fewer_threads, more_threads, neighbours };

    unsigned turn() const { return copy_ / copies_in_turn; }

    void end_trial() {
        choice_.time = time_;
        choice_.time_of_other = time_of_other_;
        if (time_of_other_ < clearly_faster * time_) {
            std::swap(choice_.way, choice_.other);
            std::swap(choice_.time, choice_.time_of_other);
            lost_ = 0;
            rest_ = shortest_rest;
        } else {
            ++lost_;
            neighbour_ = (neighbour_ + 1) % neighbours;
        }
        find_other();
    }

    // The next way to be tried; rest if there is none.
    void find_other() {
        copy_ = 0;
        time_ = time_of_other_ = 0;
        for (; lost_ < neighbours; ++lost_, neighbour_ = (neighbour_ + 1) % neighbours) {
            Way way = choice_.way;
            if (neighbour_ == next_stores || neighbour_ == stores_after) {
                way.stores = stores_after_by(neighbour_ == next_stores ? 1 : 2);
            } else if (neighbour_ == fewer_threads) {
                way.threads = (way.threads + 1) / 2;
            } else {
                way.threads = std::min(2 * way.threads, threads());
            }
            if (way == choice_.way) continue;
            choice_.other = way;
            return;
        }
        lost_ = 0;
        resting_ = rest_;
        rest_ = std::min(2 * rest_, longest_rest);
    }

    // What comes so much after the stores in use, or those if it may not be tried.
    Stores stores_after_by(unsigned places) const {
        constexpr unsigned kinds = static_cast<unsigned>(Stores::non_temporal) + 1;
        const Stores now = choice_.way.stores;
        const auto stores = static_cast<Stores>((static_cast<unsigned>(now) + places) % kinds);
        const bool is_fixed = fixed_from.load() != 0;
        const bool is_asked_for = stores == Stores::non_temporal || now == Stores::non_temporal;
        return choice_.bytes < worth_other_stores || (is_fixed && is_asked_for) ? now : stores;
    }

    Choice choice_;
    unsigned copy_ = 0;  // of the trial
    double time_ = 0, time_of_other_ = 0;
    unsigned neighbour_ = next_stores, lost_ = 0;
    std::size_t rest_ = shortest_rest, resting_ = 0;
};

// Splits of a kind whose sizes differ by less than a half. Where the mutex is taken, as it may stay
// in a child of fork, the first guess will do.
std::mutex mutex;
std::map<std::pair<unsigned, std::size_t>, Contest>& contests() {
    static auto* const known = new std::map<std::pair<unsigned, std::size_t>, Contest>;
    return *known;
}

// The largest size of the same class: a power of two, or one and a half of it.
std::size_t class_of(std::size_t bytes) {
    std::size_t power = worth_measuring;
    while (power < bytes && power <= SIZE_MAX / 2) power *= 2;
    return bytes <= power / 4 * 3 ? power / 4 * 3 : power;
}

Way guess_way(std::size_t bytes) {
    const std::size_t fixed = fixed_from.load();
    const std::size_t from = fixed != 0 ? fixed : guessed_non_temporal_from();
    const Stores stores = bytes >= from ? Stores::non_temporal : Stores::plain;
    return {stores, bytes >= worth_a_thread ? threads() : 1};
}

}  // namespace

void set_non_temporal_from(std::size_t bytes) {
    fixed_from.store(bytes);
    forget_choices();
}

void forget_choices() {
    std::lock_guard<std::mutex> lock(mutex);
    contests().clear();
}

std::size_t guessed_non_temporal_from() { return last_level_cache().bytes / 2; }

Way choose_way(const Kind& kind, std::size_t bytes) {
    const Way guess = guess_way(bytes);
    if (bytes < worth_measuring) return guess;
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return guess;
    const std::size_t size = class_of(bytes);
    Contest& contest =
        contests().try_emplace({kind.number(), size}, kind, size, guess).first->second;
    return contest.next();
}

void report_time(const Kind& kind, std::size_t bytes, const Way& way,
                 std::chrono::nanoseconds time) {
    if (bytes < worth_measuring) return;
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const auto found = contests().find({kind.number(), class_of(bytes)});
    if (found == contests().end()) return;
    found->second.report(way, static_cast<double>(time.count()) / static_cast<double>(bytes));
}

std::vector<Choice> list_choices() {
    std::vector<Choice> choices;
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return choices;
    for (const auto& [key, contest] : contests()) choices.push_back(contest.choice());
    return choices;
}

}  // namespace tensorsplit
