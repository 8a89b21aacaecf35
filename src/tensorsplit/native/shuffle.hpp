// Copying one narrow column of narrow rows by byte shuffles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "kernels.hpp"
#include "strips.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

// Each vector of 16 bytes at the destination is the bitwise OR of some vectors of the source, each
// shuffled so that the column's bytes are in their places and all others are zero. The pattern
// repeats every 16 rows.
class Shuffles {
  public:
    static constexpr std::size_t group = 16 * Vector::lanes;  // rows that are copied at once
    static constexpr std::size_t widest = 8;        // bytes of the column
    static constexpr std::ptrdiff_t farthest = 16;  // bytes from a row to the next

    static bool fit(const Rows& rows_, const Column& column) {
        return column.width <= widest && rows_.stride != 0 && std::abs(rows_.stride) <= farthest &&
               column.step == column.width;
    }

    // Compute the patterns, unless they are those of the last call.
    void prepare(std::size_t width, std::ptrdiff_t stride) {
        if (width == width_ && stride == stride_) return;
        width_ = width;
        stride_ = stride;
        loads_ = reach_ = 0;
        for (std::size_t vector = 0; vector < width; ++vector) {
            loads_ = std::max(loads_, fill(vector));
        }
    }

    // How many bytes are read from the start of a row on.
    std::ptrdiff_t reach() const {
        return static_cast<std::ptrdiff_t>(reach_) - last * std::abs(stride_);
    }

    // A lane of each vector holds its share of a group.
    void copy(const char* from, std::size_t groups, char* to) const {
        switch (loads_) {
            case 1:
                return copy_by<1>(from, groups, to);
            case 2:
                return copy_by<2>(from, groups, to);
            case 3:
                return copy_by<3>(from, groups, to);
            case 4:
                return copy_by<4>(from, groups, to);
            case 5:
                return copy_by<5>(from, groups, to);
            case 6:
                return copy_by<6>(from, groups, to);
            default:
                return copy_by<most>(from, groups, to);
        }
    }

  private:
    static constexpr std::size_t most = 17;  // loads that the bytes of one vector may need

    struct Load {
        std::uint16_t from = 0;
        alignas(16) std::uint8_t places[16];  // the source byte of each place; 0x80 for zero
    };

    static constexpr std::size_t rows = 16;
    static constexpr std::ptrdiff_t last = rows - 1;

    // Compute the pattern of one vector; return how many loads it needs. The others repeat the
    // first load and contribute zeros. All offsets are from the row that is lowest in memory.
    std::size_t fill(std::size_t vector) {
        Load* loads = loads_of_[vector];
        const auto apart = static_cast<std::size_t>(std::abs(stride_));
        std::size_t used = 0;
        for (std::size_t place = 0; place < 16; ++place) {
            const std::size_t byte = vector * 16 + place, row = byte / width_;
            const std::size_t start = (stride_ > 0 ? row : rows - 1 - row) * apart;
            const std::size_t source = start + byte % width_;
            if (used == 0 || source < loads[used - 1].from ||
                source >= loads[used - 1].from + 16u) {
                // Cover as many of the following bytes as possible; with a negative stride those
                // lie lower.
                clear(loads[used],
                      stride_ > 0 ? source : std::max<std::size_t>(start + width_, 16) - 16);
                ++used;
            }
            Load& load = loads[used - 1];
            load.places[place] = static_cast<std::uint8_t>(source - load.from);
            reach_ = std::max<std::size_t>(reach_, load.from + 16u);
        }
        for (std::size_t rest = used; rest < most; ++rest) clear(loads[rest], loads[0].from);
        return used;
    }

    static void clear(Load& load, std::size_t from) {
        load.from = static_cast<std::uint16_t>(from);
        for (std::uint8_t& place : load.places) place = 0x80;
    }

    template <std::size_t count>
    void copy_by(const char* from, std::size_t groups, char* to) const {
        // Local copies: the compiler knows that no store can change them.
        const std::size_t vectors = width_;
        const std::ptrdiff_t lane_source = static_cast<std::ptrdiff_t>(rows) * stride_;
        const char* lowest = stride_ > 0 ? from : from + last * stride_;
        const std::size_t lane_place = rows * width_;
        for (std::size_t vector = 0; vector < vectors; ++vector) {
            const char* sources[count];
            Vector::type places[count];
            for (std::size_t i = 0; i < count; ++i) {
                const Load& load = loads_of_[vector][i];
                sources[i] = lowest + load.from;
                places[i] = Vector::load(load.places, 0);
            }
            char* place = to + vector * 16;
            std::ptrdiff_t low = 0;
            for (std::size_t group = 0; group < groups; ++group) {
                Vector::type joined{};
                for (std::size_t i = 0; i < count; ++i) {
                    joined |= Vector::shuffle(Vector::load(sources[i] + low, lane_source),
                                              places[i]);
                }
                Vector::store(place, lane_place, joined);
                place += Vector::lanes * lane_place;
                low += static_cast<std::ptrdiff_t>(Vector::lanes) * lane_source;
            }
        }
    }

    std::size_t width_ = 0;
    std::ptrdiff_t stride_ = 0;
    std::size_t loads_ = 0;
    std::size_t reach_ = 0;
    Load loads_of_[widest][most];
};

}  // namespace
}  // namespace tensorsplit
