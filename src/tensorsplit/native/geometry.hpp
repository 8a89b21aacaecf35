// Choosing how to copy the parts of a split, from its extents and strides.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "jobs.hpp"
#include "shape.hpp"

namespace tensorsplit {

struct Part {
    std::size_t size;  // along the axis
    char* to;          // where its elements go, in C order
};

// An array, and where the parts of its axis go: one after the other, they are all of the axis.
struct Split {
    const char* source;
    std::size_t width;  // bytes of an element
    std::vector<Dimension> dimensions;
    std::size_t axis;
    std::vector<Part> parts;
};

// Several parts, and where they go: each has a strip of every row, one after the other.
struct Join {
    std::vector<JoinedPart> parts;
    std::size_t rows;
    std::size_t bytes;
};

using Jobs = std::vector<std::unique_ptr<Job>>;

// The jobs of a copy; none if the array is empty.
Jobs make_jobs(const Split& split);
Jobs make_jobs(Join join);

}  // namespace tensorsplit
