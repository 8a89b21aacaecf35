#include "geometry.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace tensorsplit {
namespace {

// Dimensions up to this extent are unrolled: each index becomes a column.
constexpr std::size_t few = 16;

// Up to this many parts, or indices of the axis, are copied in one pass over the source.
constexpr std::size_t most_columns = 4096;

std::ptrdiff_t signed_of(std::size_t number) { return static_cast<std::ptrdiff_t>(number); }

// The split in as few dimensions as possible.
struct Geometry {
    const char* source;
    std::size_t width;
    Shape outer;
    Dimension axis;
    Shape inner;
    std::vector<Part> parts;
    std::size_t longest = 0;  // of the sizes of the parts

    explicit Geometry(const Split& split)
        : source(split.source),
          width(split.width),
          outer(merge(split.dimensions.data(), split.dimensions.data() + split.axis)),
          axis(split.dimensions[split.axis]),
          inner(merge(split.dimensions.data() + split.axis + 1,
                      split.dimensions.data() + split.dimensions.size())) {
        parts.reserve(split.parts.size());
        for (const Part& part : split.parts) {
            if (part.size != 0) parts.push_back(part);
            longest = std::max(longest, part.size);
        }
    }

    // The number of elements for one index of the axis and of the dimensions before it.
    std::size_t inner_count() const { return count_elements(inner); }

    bool inner_is_contiguous() const {
        return inner.empty() || (inner.size() == 1 && inner.front().stride == signed_of(width));
    }

    std::ptrdiff_t closest(const Shape& shape) const {
        std::ptrdiff_t least = PTRDIFF_MAX;
        for (const Dimension& dimension : shape)
            least = std::min(least, std::abs(dimension.stride));
        return least;
    }
};

// Unroll a short last outer dimension: the columns of each of its rows become columns.
void unroll_short_rows(Shape& outer, std::vector<Column>& columns) {
    if (outer.size() < 2 || outer.back().extent > few || columns.size() > few) return;
    const Dimension row = outer.back();
    outer.pop_back();
    std::vector<Column> unrolled;
    for (std::size_t i = 0; i < row.extent; ++i) {
        for (const Column& column : columns) {
            unrolled.push_back({column.from + signed_of(i) * row.stride, column.width,
                                column.to + i * column.step, row.extent * column.step});
        }
    }
    columns = std::move(unrolled);
}

void add_rows(Jobs& jobs, const char* source, Shape outer, std::vector<Column> columns) {
    unroll_short_rows(outer, columns);
    jobs.push_back(std::make_unique<RowsJob>(source, std::move(outer), std::move(columns)));
}

// Each part is a strip of every row.
void add_strips(Jobs& jobs, const Geometry& split) {
    const std::size_t bytes = split.inner_count() * split.width;
    std::vector<Column> columns;
    columns.reserve(split.parts.size());
    std::size_t offset = 0;
    for (const Part& part : split.parts) {
        const std::size_t width = part.size * bytes;
        columns.push_back({signed_of(offset) * split.axis.stride, width, part.to, width});
        offset += part.size;
    }
    add_rows(jobs, split.source, split.outer, std::move(columns));
}

// Each index of the axis is a strip of every row; a part consists of several of them.
void add_indices(Jobs& jobs, const Geometry& split) {
    const std::size_t bytes = split.inner_count() * split.width;
    std::vector<Column> columns;
    columns.reserve(split.axis.extent);
    for (const Part& part : split.parts) {
        for (std::size_t i = 0; i < part.size; ++i) {
            columns.push_back({signed_of(columns.size()) * split.axis.stride, bytes,
                               part.to + i * bytes, part.size * bytes});
        }
    }
    add_rows(jobs, split.source, split.outer, std::move(columns));
}

// Each index of the axis is an element of every row, and the inner dimensions are the rows.
void add_planes(Jobs& jobs, const Geometry& split) {
    const std::size_t bytes = split.inner_count() * split.width;
    std::vector<Column> columns;
    std::vector<std::ptrdiff_t> leaps;
    for (const Part& part : split.parts) {
        for (std::size_t i = 0; i < part.size; ++i) {
            columns.push_back({signed_of(columns.size()) * split.axis.stride, split.width,
                               part.to + i * bytes, split.width});
            leaps.push_back(signed_of(part.size * bytes));
        }
    }
    if (split.axis.stride < 0) {  // in the order of the source
        std::reverse(columns.begin(), columns.end());
        std::reverse(leaps.begin(), leaps.end());
    }
    jobs.push_back(std::make_unique<RowsJob>(split.source, split.outer, split.inner,
                                             std::move(columns), std::move(leaps)));
}

// One part by itself, of any shape.
void add_part(Jobs& jobs, const char* source, std::size_t width, Shape shape, char* to) {
    if (shape.empty()) shape.push_back({1, signed_of(width)});
    const Dimension last = shape.back();
    if (last.stride == signed_of(width)) {
        shape.pop_back();
        const std::size_t bytes = last.extent * width;
        return add_rows(jobs, source, std::move(shape), {{0, bytes, to, bytes}});
    }
    const auto is_closer = [](const Dimension& a, const Dimension& b) {
        return std::abs(a.stride) < std::abs(b.stride);
    };
    const auto closest = std::min_element(shape.begin(), shape.end(), is_closer);
    if (last.extent <= few && shape.size() > 1) {
        shape.pop_back();
        std::vector<Column> columns;
        for (std::size_t i = 0; i < last.extent; ++i) {
            columns.push_back(
                {signed_of(i) * last.stride, width, to + i * width, last.extent * width});
        }
        add_rows(jobs, source, std::move(shape), std::move(columns));
    } else if (is_closer(*closest, last)) {
        const auto index = static_cast<std::size_t>(std::distance(shape.begin(), closest));
        jobs.push_back(std::make_unique<TilesJob>(source, shape, index, width, to));
    } else {
        jobs.push_back(std::make_unique<RowsJob>(source, std::move(shape),
                                                 std::vector<Column>{{0, width, to, width}}));
    }
}

void add_part_by_part(Jobs& jobs, const Geometry& split) {
    std::ptrdiff_t offset = 0;
    for (const Part& part : split.parts) {
        Shape shape(split.outer);
        shape.push_back({part.size, split.axis.stride});
        shape.insert(shape.end(), split.inner.begin(), split.inner.end());
        Shape merged = merge(shape.data(), shape.data() + shape.size());
        const char* source = split.source + offset * split.axis.stride;
        add_part(jobs, source, split.width, std::move(merged), part.to);
        offset += signed_of(part.size);
    }
}

}  // namespace

Jobs make_jobs(const Split& split) {
    Jobs jobs;
    for (const Dimension& dimension : split.dimensions) {
        if (dimension.extent == 0) return jobs;
    }
    const Geometry geometry(split);
    const std::ptrdiff_t axis = std::abs(geometry.axis.stride);
    const bool unrollable = geometry.axis.extent <= most_columns;
    if (geometry.inner_is_contiguous()) {
        const std::size_t bytes = geometry.inner_count() * geometry.width;
        if (geometry.longest == 1 || geometry.axis.stride == signed_of(bytes)) {
            add_strips(jobs, geometry);
        } else if (geometry.longest <= few && unrollable &&
                   geometry.closest(geometry.outer) > axis && !geometry.outer.empty()) {
            add_indices(jobs, geometry);
        } else {
            add_part_by_part(jobs, geometry);
        }
    } else if (unrollable && axis < geometry.closest(geometry.inner)) {
        add_planes(jobs, geometry);
    } else {
        add_part_by_part(jobs, geometry);
    }
    return jobs;
}

Jobs make_jobs(Join join) {
    Jobs jobs;
    if (join.bytes == 0) return jobs;
    jobs.push_back(std::make_unique<JoinJob>(std::move(join.parts), join.rows));
    return jobs;
}

}  // namespace tensorsplit
