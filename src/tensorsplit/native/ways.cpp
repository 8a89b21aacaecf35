#include "ways.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "cpu.hpp"
#include "pool.hpp"

#ifndef _WIN32
#include <pthread.h>
#endif

namespace tensorsplit {
namespace {

// From these sizes on, measuring takes less than it may save, and prefetching and non-temporal
// stores are worth a try. Smaller parts stay in a cache, and one trial of non-temporal stores takes
// as long as six copies. Below so many bytes for each thread, waking it takes longer than it saves
// (tests/native/ways.cpp has a model of that).
constexpr std::size_t worth_measuring = 128 * 1024;
constexpr std::size_t worth_prefetching = 1024 * 1024;
constexpr std::size_t worth_non_temporal = 3 * 1024 * 1024;
constexpr std::size_t worth_a_thread = 128 * 1024;

// A trial is a turn of another way: some copies, of which the fastest counts, since whatever
// disturbs a copy makes it slower. The first copy after a change finds the caches as the other way
// left them, and only counts where it is far slower. The way in use has a turn before all trials,
// and one more before it is replaced.
constexpr unsigned copies_in_turn = 3;
constexpr double far_slower = 1.6;      // ends a trial after one copy,
constexpr double clearly_slower = 1.2;  // and this after two
constexpr double clearly_faster = 0.9;

// After all trials, how many copies until the next.
constexpr std::size_t shortest_rest = 128;
constexpr std::size_t longest_rest = 16384;

// So many copies in a row that are far slower than was measured end a rest: what is fastest may
// have changed, as where new memory suddenly costs a second thread much. Each time it takes twice
// as many, since other programs may have made them slow.
constexpr std::size_t fewest_slow = 8;

std::atomic<std::size_t> fixed_from{0};

// Whether other stores than these may be tried for copies of so many bytes, or learned.
bool may_replace(Stores now, Stores other, std::size_t bytes) {
    if (now != Stores::non_temporal && other != Stores::non_temporal) {
        return bytes >= worth_prefetching;
    }
    return bytes >= worth_non_temporal && fixed_from.load() == 0;
}

// What is near to a way: first other stores, then half and twice as many threads.
std::vector<Way> near(const Way& way, std::size_t bytes) {
    std::vector<Way> found;
    constexpr unsigned kinds = static_cast<unsigned>(Stores::non_temporal) + 1;
    for (unsigned i = 1; i < kinds; ++i) {
        const auto stores = static_cast<Stores>((static_cast<unsigned>(way.stores) + i) % kinds);
        if (may_replace(way.stores, stores, bytes)) found.push_back({stores, way.threads});
    }
    found.push_back({way.stores, (way.threads + 1) / 2});
    found.push_back({way.stores, std::min(2 * way.threads, threads())});
    return found;
}

// Which way is fastest for splits of a kind and size. A round tries all ways that are near the one
// in use; then that one is used for a while, until the next round.
class Contest {
  public:
    Contest(const Kind& kind, std::size_t bytes, Way guess)
        : choice_{kind, bytes, guess, guess, 0, 0} {}

    // What a similar contest has found out: its stores are the first guess, and those that are
    // much slower are not tried in the first round.
    void learn_from(const Contest& other) {
        const Stores guess = choice_.way.stores, best = other.choice_.way.stores;
        if (guess != best && !may_replace(guess, best, choice_.bytes)) return;
        choice_.way.stores = choice_.other.stores = best;
        for (const Tried& each : other.tried_) {
            if (each.is_slow && each.way.threads == other.choice_.way.threads) {
                tried_.push_back({{each.way.stores, choice_.way.threads}, true});
            }
        }
    }

    bool is_settled() const { return is_settled_; }
    const Choice& choice() const { return choice_; }

    Way next() const { return is_trial_ ? choice_.other : choice_.way; }

    void report(const Way& way, double time) {
        if (!(way == next())) return;  // chosen before the last turn ended
        if (resting_ != 0) {
            rest_from(time);
            return;
        }
        double& least = is_trial_ ? choice_.time_of_other : choice_.time;
        if (copy_ > 0) least = least == 0 ? time : std::min(least, time);
        ++copy_;
        if (is_trial_) {
            go_on_with_trial(time);
        } else if (copy_ == copies_in_turn) {
            end_own_turn();
        }
    }

  private:
    struct Tried {
        Way way;
        bool is_slow;  // clearly
    };

    void rest_from(double time) {
        slow_ = time > far_slower * choice_.time ? slow_ + 1 : 0;
        if (slow_ == most_slow_) {
            most_slow_ = std::min(2 * most_slow_, longest_rest);
            resting_ = 1;
        }
        if (--resting_ == 0) begin_round();
    }

    bool wins() const { return choice_.time_of_other < clearly_faster * choice_.time; }

    void go_on_with_trial(double time) {
        const double limit = (copy_ == 1 ? far_slower : clearly_slower) * choice_.time;
        const bool is_slow = (copy_ == 1 ? time : choice_.time_of_other) > limit;
        if (!is_slow && copy_ < copies_in_turn) return;
        if (copy_ == 1) choice_.time_of_other = time;
        is_challenged_ = !is_slow && wins();
        if (is_challenged_) {
            begin_own_turn();
        } else {
            tried_.push_back({choice_.other, is_slow});
            try_next();
        }
    }

    void end_own_turn() {
        if (is_challenged_) {
            if (wins()) {
                std::swap(choice_.way, choice_.other);
                std::swap(choice_.time, choice_.time_of_other);
                rest_ = shortest_rest;
            }
            const bool is_slow = choice_.time_of_other > clearly_slower * choice_.time;
            tried_.push_back({choice_.other, is_slow});
        }
        try_next();
    }

    void begin_own_turn() {
        is_trial_ = false;
        copy_ = 0;
    }

    void begin_round() {
        slow_ = 0;
        tried_.clear();
        choice_.time = 0;
        is_challenged_ = false;
        begin_own_turn();
    }

    // The next way that was not tried in this round; rest if there is none.
    void try_next() {
        copy_ = 0;
        for (const Way& way : near(choice_.way, choice_.bytes)) {
            const auto is_it = [&](const Tried& each) { return each.way == way; };
            if (way == choice_.way || std::any_of(tried_.begin(), tried_.end(), is_it)) continue;
            choice_.other = way;
            choice_.time_of_other = 0;
            is_trial_ = true;
            return;
        }
        is_trial_ = false;
        is_settled_ = true;
        resting_ = rest_;
        rest_ = std::min(2 * rest_, longest_rest);
    }

    Choice choice_;
    std::vector<Tried> tried_;  // in this round
    unsigned copy_ = 0;         // of the turn
    bool is_trial_ = false, is_challenged_ = false, is_settled_ = false;
    std::size_t rest_ = shortest_rest, resting_ = 0;
    std::size_t slow_ = 0, most_slow_ = fewest_slow;  // in a row
};

// Splits of a kind whose sizes differ by less than a half. Where another thread has the mutex, the
// first guess will do.
std::mutex mutex;
std::map<std::pair<unsigned, std::size_t>, Contest>& contests() {
    static auto* const known = new std::map<std::pair<unsigned, std::size_t>, Contest>;
    return *known;
}

#ifndef _WIN32
// A fork waits for the thread that has the mutex: its child has no such thread.
[[maybe_unused]] const int registered =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
#endif

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
    return {stores, std::clamp<std::size_t>(bytes / worth_a_thread, 1, threads())};
}

// Whether what is fastest for one is likely to be so for the other: of the same kind and next in
// size, or of the same size and half or twice as many columns, or as wide ones.
bool are_similar(const Choice& one, const Choice& other) {
    const Kind &kind = one.kind, &known = other.kind;
    const int columns = std::abs(int{kind.columns} - int{known.columns});
    const int widths = std::abs(int{kind.width} - int{known.width});
    const std::size_t less = std::min(one.bytes, other.bytes);
    const std::size_t more = std::max(one.bytes, other.bytes);
    const bool is_next_size = more > less && more <= less / 2 * 3;
    return kind.flags() == known.flags() && (more == less || is_next_size) &&
           columns + widths + (is_next_size ? 1 : 0) == 1;
}

Contest new_contest(const Kind& kind, std::size_t bytes, const Way& guess) {
    Contest made(kind, bytes, guess);
    for (const auto& [key, contest] : contests()) {
        if (!contest.is_settled() || !are_similar(made.choice(), contest.choice())) continue;
        made.learn_from(contest);
        break;
    }
    return made;
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
    const std::pair<unsigned, std::size_t> key{kind.number(), size};
    auto found = contests().find(key);
    if (found == contests().end()) {
        found = contests().emplace(key, new_contest(kind, size, guess)).first;
    }
    return found->second.next();
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
