// Joining narrow strips of several arrays to rows. Included by the instruction-set specific files
// only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "lines.hpp"
#include "stream.hpp"
#include "strips.hpp"
#include "transpose.hpp"
#include "vectors.hpp"

namespace tensorsplit {
namespace {

inline JoinedRows some_of(const JoinedRows& rows, std::size_t begin, std::size_t count) {
    return {rows.to + begin * rows.step, rows.step, count};
}

inline Strip after(const Strip& strip, std::size_t rows) {
    return {strip.from + static_cast<std::ptrdiff_t>(rows) * strip.stride, strip.stride,
            strip.width};
}

inline void copy_strip(const JoinedRows& rows, const Strip& strip) {
    copy_column({strip.from, strip.stride, rows.count, 0}, {0, strip.width, rows.to, rows.step});
}

constexpr bool is_power_of_two(std::size_t number) { return (number & (number - 1)) == 0; }

// Rows of a number of strips that is not a power of two. As many vectors of 16 bytes as there are
// strips hold some whole rows. Each is the bitwise OR of the arrays' vectors, shuffled so that the
// bytes of an array are in their places and all others are zero.
template <class Vector, std::size_t strips, std::size_t width>
class Shuffled {
  public:
    static void interleave(typename Vector::type* vectors) {
        typename Vector::type made[strips];
        for (std::size_t k = 0; k < strips; ++k) {
            made[k] = Vector::shuffle(vectors[0], pattern(k, 0));
            for (std::size_t i = 1; i < strips; ++i) {
                made[k] |= Vector::shuffle(vectors[i], pattern(k, i));
            }
        }
        for (std::size_t k = 0; k < strips; ++k) vectors[k] = made[k];
    }

  private:
    struct Patterns {
        // The source byte of each place of a made vector, for each array.
        alignas(Vector::size) std::uint8_t places[strips][strips][Vector::size];
    };

    static constexpr Patterns make_patterns() {
        Patterns patterns{};
        for (std::size_t byte = 0; byte < 16 * strips; ++byte) {
            const std::size_t element = byte / width;
            const std::size_t place = element / strips * width + byte % width;
            for (std::size_t i = 0; i < strips; ++i) {
                for (std::size_t lane = 0; lane < Vector::lanes; ++lane) {
                    patterns.places[byte / 16][i][16 * lane + byte % 16] =
                        i == element % strips ? static_cast<std::uint8_t>(place) : 0x80;
                }
            }
        }
        return patterns;
    }

    static constexpr Patterns patterns = make_patterns();

    static typename Vector::type pattern(std::size_t vector, std::size_t array) {
        return Vector::load_whole(patterns.places[vector][array]);
    }
};

// All strips of rows that have no others and lie together.
template <class Vector, std::size_t strips, std::size_t width>
class WholeRows {
  public:
    static constexpr std::size_t together = Vector::size / width;

    static constexpr bool can_join =
        is_power_of_two(strips) || (strips < Tile<Vector, width>::columns && Vector::can_shuffle);

    static void join(const JoinedRows& rows, const Strip* arrays) {
        const char* from[strips];
        for (std::size_t i = 0; i < strips; ++i) from[i] = arrays[i].from;
        char* to = rows.to;
        for (std::size_t group = 0; group < rows.count / together; ++group) {
            typename Vector::type vectors[strips];
            for (std::size_t i = 0; i < strips; ++i) {
                vectors[i] = Vector::load_whole(from[i] + group * Vector::size);
            }
            if constexpr (is_power_of_two(strips)) {
                interleave<Vector, width, strips>(vectors);
            } else {
                Shuffled<Vector, strips, width>::interleave(vectors);
            }
            for (std::size_t k = 0; k < strips; ++k) {
                Vector::store_lanes(to + 16 * k, 16 * strips, vectors[k]);
            }
            to += Vector::size * strips;
        }
    }
};

// At least as many strips as a tile has columns. Where they are no multiple of it, the last tile
// writes some strips again. Looking ahead fetches the rows that the next call reads.
template <class Vector, std::size_t width, bool looks_ahead>
void join_tiles(const JoinedRows& rows, const Strip* arrays, std::size_t count) {
    constexpr std::size_t of_tile = Tile<Vector, width>::columns;
    constexpr std::size_t height = Tile<Vector, width>::rows;
    const std::size_t whole = rows.count / height * height;
    for (std::size_t done = 0; done < count; done += of_tile) {
        const std::size_t first = std::min(done, count - of_tile);
        const char* from[of_tile];
        for (std::size_t i = 0; i < of_tile; ++i) from[i] = arrays[first + i].from;
        for (std::size_t row = 0; row < whole; row += height) {
            typename Vector::type vectors[of_tile];
            for (std::size_t i = 0; i < of_tile; ++i) {
                vectors[i] = Vector::load_whole(from[i] + row * width);
                if constexpr (looks_ahead) {
                    Vector::prefetch(from[i] + (row + rows.count) * width);
                }
            }
            interleave<Vector, width, of_tile>(vectors);
            char* to = rows.to + row * rows.step + first * width;
            for (std::size_t k = 0; k < of_tile; ++k) {
                Vector::store_lanes(to + k * rows.step, of_tile * rows.step, vectors[k]);
            }
        }
    }
}

// Up to so many strips of whole rows fit in registers.
constexpr std::size_t most_in_registers = 8;

// Join what can be joined by vectors, and return how many of the first rows that were.
template <class Vector, bool looks_ahead, std::size_t width, std::size_t strips = 2>
std::size_t join_alike(const JoinedRows& rows, const Strip* arrays, std::size_t count) {
    using Tile = Tile<Vector, width>;
    if constexpr (strips <= most_in_registers) {
        using Whole = WholeRows<Vector, strips, width>;
        if (count != strips || rows.step != strips * width) {
            return join_alike<Vector, looks_ahead, width, strips + 1>(rows, arrays, count);
        }
        if constexpr (Whole::can_join) {
            Whole::join(rows, arrays);
            return rows.count / Whole::together * Whole::together;
        }
    }
    if (count < Tile::columns) return 0;
    join_tiles<Vector, width, looks_ahead>(rows, arrays, count);
    return rows.count / Tile::rows * Tile::rows;
}

template <class Vector, bool looks_ahead>
std::size_t join_alike_of(const JoinedRows& rows, const Strip* arrays, std::size_t count) {
    switch (arrays->width) {
        case 1:
            return join_alike<Vector, looks_ahead, 1>(rows, arrays, count);
        case 2:
            return join_alike<Vector, looks_ahead, 2>(rows, arrays, count);
        case 4:
            return join_alike<Vector, looks_ahead, 4>(rows, arrays, count);
        case 8:
            return join_alike<Vector, looks_ahead, 8>(rows, arrays, count);
        default:
            return 0;
    }
}

// How many of the first strips are of the same width and lie together in their arrays.
inline std::size_t count_alike(const Strip* strips, std::size_t count) {
    const std::size_t width = strips->width;
    std::size_t alike = 0;
    while (alike < count && strips[alike].width == width &&
           strips[alike].stride == static_cast<std::ptrdiff_t>(width)) {
        ++alike;
    }
    return alike;
}

// Rows of different strips, of which several fit in a vector: some strips of each array are
// shuffled to their places. What is written after the last row is overwritten by the next ones.
template <class Bytes>
class ShortRows {
  public:
    ShortRows(const JoinedRows& rows, const Strip* arrays, std::size_t count)
        : rows_(rows), arrays_(arrays), count_(count), each_(Bytes::size / rows.step) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < count; at += arrays[i++].width) {
            for (std::uint8_t& place : places_[i]) place = 0x80;  // zero
            for (std::size_t byte = 0; byte < each_ * arrays[i].width; ++byte) {
                const std::size_t row = byte / arrays[i].width;
                const std::size_t place = row * rows.step + at + byte % arrays[i].width;
                places_[i][place] = static_cast<std::uint8_t>(byte);
            }
        }
    }

    // Whether they are such rows, which lie together with their strips.
    static bool can_join(const JoinedRows& rows, const Strip* arrays, std::size_t count) {
        std::size_t width = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (arrays[i].stride != static_cast<std::ptrdiff_t>(arrays[i].width)) return false;
            width += arrays[i].width;
        }
        return count > 1 && width == rows.step && width <= longest;
    }

    // How many of the first rows were joined. As many rows as a vector has bytes are left, so that
    // no vector is read or written beyond the last row.
    std::size_t join() const {
        const std::size_t groups =
            rows_.count < Bytes::size ? 0 : (rows_.count - Bytes::size) / each_;
        char* to = rows_.to;
        for (std::size_t group = 0; group < groups; ++group, to += each_ * rows_.step) {
            auto joined = load(0, group);
            for (std::size_t i = 1; i < count_; ++i) joined |= load(i, group);
            Bytes::store(to, joined);
        }
        return groups * each_;
    }

  private:
    static constexpr std::size_t longest = 8;

    typename Bytes::type load(std::size_t i, std::size_t group) const {
        const char* from = arrays_[i].from + group * each_ * arrays_[i].width;
        return Bytes::shuffle(Bytes::load_whole(from), Bytes::load_whole(places_[i]));
    }

    const JoinedRows& rows_;
    const Strip* arrays_;
    std::size_t count_, each_;
    alignas(16) std::uint8_t places_[longest][Bytes::size];
};

// Rows that stay in the first-level cache, of which the first is row number `row` of the arrays.
template <class Vector, bool looks_ahead>
void join_near(JoinedRows rows, std::size_t row, const Strip* strips, std::size_t count) {
    Strip near[most_strips];
    for (std::size_t i = 0; i < count; ++i) near[i] = after(strips[i], row);
    if constexpr (Bytes::can_shuffle) {
        if (count_alike(near, count) != count && ShortRows<Bytes>::can_join(rows, near, count)) {
            const std::size_t joined = ShortRows<Bytes>(rows, near, count).join();
            rows = some_of(rows, joined, rows.count - joined);
            for (std::size_t i = 0; i < count; ++i) near[i] = after(near[i], joined);
        }
    }
    for (std::size_t done = 0; done < count;) {
        const std::size_t alike = std::max<std::size_t>(count_alike(near + done, count - done), 1);
        const std::size_t joined = join_alike_of<Vector, looks_ahead>(rows, near + done, alike);
        for (const std::size_t end = done + alike; done < end; ++done) {
            copy_strip(some_of(rows, joined, rows.count - joined), after(near[done], joined));
            rows.to += near[done].width;
        }
    }
}

// The highest tiles have so many rows.
constexpr std::size_t fewest_joined = 32;

template <class Vector>
void join_rows(const JoinedRows& rows, const Strip* strips, std::size_t count, Stores stores) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < count; ++i) width += strips[i].width;
    const std::size_t together = std::max(block / width / 64 * 64, fewest_joined);
    const bool is_staged = stores == Stores::non_temporal && Vector::can_stream &&
                           rows.step == width && line + together * width <= sizeof(Stage::strips);
    for (std::size_t row = 0; row < rows.count; row += together) {
        JoinedRows near = some_of(rows, row, std::min(together, rows.count - row));
        char* to = near.to;
        if (is_staged) near.to = stage().strips + offset_in_line(to);
        if (stores == Stores::plain) {
            join_near<Vector, false>(near, row, strips, count);
        } else {
            join_near<Vector, true>(near, row, strips, count);
        }
        if (!is_staged) continue;
        Prefetcher<Vector> nothing({}, 0, 0, {}, 0);  // the sources are read in their order
        stream_bytes<Vector>(to, near.to, near.count * width, nothing);
    }
}

}  // namespace
}  // namespace tensorsplit
