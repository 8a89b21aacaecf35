#include "processors.hpp"

#include <cstdio>
#include <cstdlib>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace tensorsplit {

#ifdef __linux__

namespace {

cpu_set_t set_of(const Processors& processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t i = 0; i < processors.size(); ++i) {
        if (processors[i]) CPU_SET(i, &set);
    }
    return set;
}

}  // namespace

std::optional<Place> find_place() {
    cpu_set_t set;
    const int processor = sched_getcpu();
    if (processor < 0 || sched_getaffinity(0, sizeof set, &set) != 0) return {};
    Place place{{}, static_cast<std::size_t>(processor)};
    if (place.processor >= place.allowed.size()) return {};
    for (std::size_t i = 0; i < place.allowed.size(); ++i) {
        if (CPU_ISSET(i, &set)) place.allowed.set(i);
    }
    return place;
}

bool is_on(std::size_t processor) {
    const int now = sched_getcpu();
    return now >= 0 && static_cast<std::size_t>(now) == processor;
}

Processors core_of(std::size_t processor) {
    char path[96], text[256] = "";
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
                  processor);
    if (std::FILE* file = std::fopen(path, "r")) {
        if (std::fgets(text, sizeof text, file) == nullptr) text[0] = '\0';
        std::fclose(file);
    }
    Processors core = read_processors(text);
    core.set(processor);
    return core;
}

void keep_on(std::thread::native_handle_type thread, const Processors& processors) noexcept {
    const cpu_set_t set = set_of(processors);
    static_cast<void>(pthread_setaffinity_np(thread, sizeof set, &set));
}

void stay_on(const Processors& processors) noexcept { keep_on(pthread_self(), processors); }

#else

std::optional<Place> find_place() { return {}; }
bool is_on(std::size_t) { return false; }
Processors core_of(std::size_t) { return {}; }
void keep_on(std::thread::native_handle_type, const Processors&) noexcept {}
void stay_on(const Processors&) noexcept {}

#endif

Processors read_processors(const char* text) {
    Processors found;
    for (;;) {
        char* end = nullptr;
        const unsigned long first = std::strtoul(text, &end, 10);
        if (end == text) return found;
        text = end;
        unsigned long last = first;
        if (*text == '-') {
            last = std::strtoul(text + 1, &end, 10);
            text = end;
        }
        for (unsigned long i = first; i <= last && i < found.size(); ++i) found.set(i);
        if (*text != ',') return found;
        ++text;
    }
}

Processors beside(const Place& place, const Processors& core, std::size_t helpers) {
    const Processors other_cores = place.allowed & ~core;
    if (other_cores.any() && other_cores.count() >= helpers) return other_cores;
    Processors others = place.allowed;
    others.reset(place.processor);
    return others.any() ? others : place.allowed;
}

}  // namespace tensorsplit
