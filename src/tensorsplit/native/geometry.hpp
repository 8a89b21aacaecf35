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

// The jobs of a copy; none if the array is empty.
std::vector<std::unique_ptr<Job>> make_jobs(const Split& split);

}  // namespace tensorsplit
