// The kinds of jobs that a split is broken into, and their division among threads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels.hpp"
#include "shape.hpp"
#include "ways.hpp"

namespace tensorsplit {

// A range of a job's units, and of its columns.
struct Piece {
    std::size_t begin, end;
    std::size_t first_column, last_column;
};

// Which kernels copy, and how they store.
struct Mode {
    const Kernels& kernels;
    Stores stores;
};

class Job {
  public:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    virtual ~Job() = default;

    virtual Kind kind() const = 0;

    // All of it in pieces of about `bytes` bytes, which may run on any thread and in any order.
    virtual std::vector<Piece> pieces(std::size_t bytes) const = 0;

    virtual void run(const Mode& mode, const Piece& piece) const = 0;
};

// Rows split into columns. The rows are those of `outer`, whose last dimension is the one that
// changes from row to row, once for each index of `leading`; from one such index to the next,
// column i moves by `leaps[i]` bytes at the destination.
class RowsJob final : public Job {
  public:
    RowsJob(const char* source, Shape outer, std::vector<Column> columns);
    RowsJob(const char* source, Shape leading, Shape outer, std::vector<Column> columns,
            std::vector<std::ptrdiff_t> leaps);

    Kind kind() const override;
    std::vector<Piece> pieces(std::size_t bytes) const override;
    void run(const Mode& mode, const Piece& piece) const override;

  private:
    std::size_t units() const { return count_elements(leading_) * rows_; }
    void run_rows(const Mode& mode, const char* source, const Piece& piece,
                  const Column* columns) const;

    const char* source_;
    Shape leading_;
    Shape outer_;    // without its last dimension,
    Dimension row_;  // which is this one
    std::vector<Column> columns_;
    std::vector<std::ptrdiff_t> leaps_;
    std::size_t rows_;  // for each index of `leading_`
};

// A part that is joined with others: where its rows lie, and the strip of every row of the whole
// that they go to.
struct JoinedPart {
    const char* source;
    Shape outer;
    Column column;  // its `from` is 0
};

// Rows joined from strips of several parts. The outer dimensions of all have as many elements.
class JoinJob final : public Job {
  public:
    JoinJob(std::vector<JoinedPart> parts, std::size_t rows);

    Kind kind() const override;
    std::vector<Piece> pieces(std::size_t bytes) const override;
    void run(const Mode& mode, const Piece& piece) const override;

  private:
    std::size_t bytes_of_row(const Piece& piece) const;
    const char* strip_of(std::size_t number, std::size_t row) const;
    void run_narrow(const Mode& mode, const Piece& piece) const;
    void run_part(const Mode& mode, std::size_t number, std::size_t begin, std::size_t end) const;

    std::vector<const char*> sources_;
    std::vector<Shape> outers_;       // without their last dimensions,
    std::vector<Dimension> rows_of_;  // which are these
    std::vector<Column> columns_;
    std::size_t rows_;
};

// A part whose elements are closest together along a dimension that is not the last one.
class TilesJob final : public Job {
  public:
    // The source is a part of shape `shape`, to be put in C order at `to`; the elements are closest
    // along dimension `closest`, which is not the last.
    TilesJob(const char* source, const Shape& shape, std::size_t closest, std::size_t width,
             char* to);

    Kind kind() const override;
    std::vector<Piece> pieces(std::size_t bytes) const override;
    void run(const Mode& mode, const Piece& piece) const override;

  private:
    std::size_t units() const { return count_elements(outer_) * row_blocks_ * column_blocks_; }
    void run_tile(const Mode& mode, std::size_t unit) const;

    const char* source_;
    Shape outer_;     // the other dimensions in the source
    Shape outer_to_;  // and at the destination
    Dimension row_;
    Dimension column_;
    std::ptrdiff_t column_step_;  // from a column to the next at the destination
    std::size_t width_;
    char* to_;
    std::size_t row_blocks_, column_blocks_;
};

}  // namespace tensorsplit
