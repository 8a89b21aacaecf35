#include "jobs.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tensorsplit {
namespace {

// Longer strips are divided among threads. Strips of this length are short enough for the hardware
// to prefetch what a thread reads next while it writes.
constexpr std::size_t longest_strip = 256 * 1024;

// Columns lie on pages of their own. More than so many are copied in groups, from the first row to
// the last: that takes a tenth to a fifth less for some thousands.
constexpr std::size_t most_columns = most_strips;

// So many bytes of the rows of a join are written part by part, or so many rows.
constexpr std::size_t joined_bytes = 128 * 1024;
constexpr std::size_t fewest_joined_rows = 64;

// Strips that are narrower on average are joined row by row, wider ones array by array.
constexpr std::size_t narrow_strip = 256;

// The rows of a tile may each lie on a page of their own, so a good part of each is read: this many
// bytes, or this many columns where those are wide.
constexpr std::size_t tile_rows = 1024;
constexpr std::size_t tile_row_bytes = 1024;
constexpr std::size_t fewest_tile_columns = 64;
constexpr std::size_t most_tile_columns = tile_row_bytes;

std::size_t columns_of_tile(std::size_t width) {
    return std::max(tile_row_bytes / width, fewest_tile_columns);
}

// This many strips end at the boundary of a cache line if they begin at one.
constexpr std::size_t whole_lines = 64;

std::size_t divide_up(std::size_t number, std::size_t by) { return (number + by - 1) / by; }

std::vector<Piece> equal_pieces(std::size_t units, std::size_t unit_bytes, std::size_t bytes) {
    std::size_t each = std::max<std::size_t>(bytes / std::max<std::size_t>(unit_bytes, 1), 1);
    if (each > whole_lines) each -= each % whole_lines;
    std::vector<Piece> pieces;
    for (std::size_t unit = 0; unit < units; unit += each) {
        pieces.push_back({unit, std::min(unit + each, units), 0, 0});
    }
    return pieces;
}

bool is_long(const Column& column) { return column.width > longest_strip; }

// The columns, with the very wide ones divided.
std::vector<Column> shorten(std::vector<Column> columns) {
    if (std::none_of(columns.begin(), columns.end(), is_long)) return columns;
    std::vector<Column> shorter;
    for (Column column : columns) {
        while (is_long(column)) {
            shorter.push_back({column.from, longest_strip, column.to, column.step});
            column.from += static_cast<std::ptrdiff_t>(longest_strip);
            column.to += longest_strip;
            column.width -= longest_strip;
        }
        shorter.push_back(column);
    }
    return shorter;
}

std::size_t line_offset(const char* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 64;
}

std::uint8_t logarithm(std::size_t number) {
    std::uint8_t result = 0;
    while (number > 1 && result < 31) number /= 2, ++result;
    return result;
}

Dimension take_last(Shape& shape) {
    if (shape.empty()) return {1, 0};
    const Dimension last = shape.back();
    shape.pop_back();
    return last;
}

Kind kind_of(const std::vector<Column>& columns, bool is_joined) {
    const Column& first = columns.front();
    std::size_t bytes = 0;
    bool even = true, in_step = true;
    for (const Column& column : columns) {
        bytes += column.width;
        even = even && column.width == first.width;
        in_step = in_step && line_offset(column.to) == line_offset(first.to);
    }
    const std::size_t width = bytes / columns.size();
    return {false, is_joined, logarithm(columns.size()), logarithm(width), even, in_step};
}

// Where rows are long, a piece is some columns of some rows: enough rows for narrow columns to be
// copied in tiles.
std::vector<Piece> pieces_of(const std::vector<Column>& columns, std::size_t rows,
                             std::size_t bytes) {
    const std::size_t part_of_row = std::max(bytes / std::min<std::size_t>(rows, 32), bytes / 16);
    std::vector<Piece> pieces;
    for (std::size_t first = 0; first < columns.size();) {
        std::size_t last = first, width = 0;
        while (last < columns.size() && last - first < most_columns &&
               (width == 0 || width + columns[last].width <= part_of_row)) {
            width += columns[last++].width;
        }
        for (Piece piece : equal_pieces(rows, width, bytes)) {
            piece.first_column = first;
            piece.last_column = last;
            pieces.push_back(piece);
        }
        first = last;
    }
    // In the order of the rows.
    const auto is_before = [](const Piece& a, const Piece& b) { return a.begin < b.begin; };
    std::stable_sort(pieces.begin(), pieces.end(), is_before);
    return pieces;
}

}  // namespace

RowsJob::RowsJob(const char* source, Shape outer, std::vector<Column> columns)
    : RowsJob(source, {}, std::move(outer), std::move(columns), {}) {}

RowsJob::RowsJob(const char* source, Shape leading, Shape outer, std::vector<Column> columns,
                 std::vector<std::ptrdiff_t> leaps)
    : source_(source),
      leading_(std::move(leading)),
      outer_(std::move(outer)),
      row_(take_last(outer_)),
      columns_(leaps.empty() ? shorten(std::move(columns)) : std::move(columns)),
      leaps_(std::move(leaps)),
      rows_(count_elements(outer_) * row_.extent) {}

Kind RowsJob::kind() const { return kind_of(columns_, false); }

std::vector<Piece> RowsJob::pieces(std::size_t bytes) const {
    return pieces_of(columns_, units(), bytes);
}

void RowsJob::run(const Mode& mode, const Piece& piece) const {
    const Column* first = columns_.data() + piece.first_column;
    if (leaps_.empty()) return run_rows(mode, source_, piece, first);
    Column columns[most_columns];
    const std::size_t count = piece.last_column - piece.first_column;
    std::copy_n(first, count, columns);
    for (std::size_t begin = piece.begin; begin < piece.end;) {
        const std::size_t index = begin / rows_;
        const std::size_t start = index * rows_;
        const std::size_t end = std::min(start + rows_, piece.end);
        for (std::size_t i = 0; i < count; ++i) {
            const std::ptrdiff_t leap = leaps_[piece.first_column + i];
            columns[i].to = first[i].to + static_cast<std::ptrdiff_t>(index) * leap;
        }
        const Piece rows{begin - start, end - start, piece.first_column, piece.last_column};
        run_rows(mode, source_ + offset_of(leading_, index), rows, columns);
        begin = end;
    }
}

void RowsJob::run_rows(const Mode& mode, const char* source, const Piece& piece,
                       const Column* columns) const {
    for (std::size_t begin = piece.begin; begin < piece.end;) {
        const std::size_t index = begin / row_.extent;
        const std::size_t skipped = begin % row_.extent;
        const std::size_t end = std::min(begin - skipped + row_.extent, piece.end);
        const char* first =
            source + offset_of(outer_, index) + static_cast<std::ptrdiff_t>(skipped) * row_.stride;
        mode.kernels.copy_rows({first, row_.stride, end - begin, begin}, columns,
                               piece.last_column - piece.first_column, mode.stores);
        begin = end;
    }
}

JoinJob::JoinJob(std::vector<JoinedPart> parts, std::size_t rows) : rows_(rows) {
    sources_.reserve(parts.size());
    outers_.reserve(parts.size());
    rows_of_.reserve(parts.size());
    columns_.reserve(parts.size());
    for (JoinedPart& part : parts) {
        const Dimension row = take_last(part.outer);
        const auto add = [&](const Column& column, Shape outer) {
            sources_.push_back(part.source);
            outers_.push_back(std::move(outer));
            rows_of_.push_back(row);
            columns_.push_back(column);
        };
        if (is_long(part.column)) {
            for (const Column& column : shorten({part.column})) add(column, part.outer);
        } else {
            add(part.column, std::move(part.outer));
        }
    }
}

Kind JoinJob::kind() const { return kind_of(columns_, true); }

std::vector<Piece> JoinJob::pieces(std::size_t bytes) const {
    return pieces_of(columns_, rows_, bytes);
}

std::size_t JoinJob::bytes_of_row(const Piece& piece) const {
    std::size_t bytes = 0;
    for (std::size_t i = piece.first_column; i < piece.last_column; ++i) bytes += columns_[i].width;
    return bytes;
}

void JoinJob::run(const Mode& mode, const Piece& piece) const {
    const std::size_t bytes = bytes_of_row(piece);
    const std::size_t count = piece.last_column - piece.first_column;
    if (bytes < narrow_strip * count) return run_narrow(mode, piece);
    const std::size_t together = std::max(joined_bytes / bytes, fewest_joined_rows);
    for (std::size_t begin = piece.begin; begin < piece.end; begin += together) {
        const std::size_t end = std::min(begin + together, piece.end);
        for (std::size_t i = piece.first_column; i < piece.last_column; ++i) {
            run_part(mode, i, begin, end);
        }
    }
}

const char* JoinJob::strip_of(std::size_t number, std::size_t row) const {
    const Dimension rows = rows_of_[number];
    return sources_[number] + offset_of(outers_[number], row / rows.extent) +
           static_cast<std::ptrdiff_t>(row % rows.extent) * rows.stride;
}

void JoinJob::run_narrow(const Mode& mode, const Piece& piece) const {
    Strip strips[most_strips];
    const Column& first = columns_[piece.first_column];
    for (std::size_t begin = piece.begin; begin < piece.end;) {
        std::size_t end = piece.end;
        for (std::size_t i = piece.first_column; i < piece.last_column; ++i) {
            const Dimension row = rows_of_[i];
            strips[i - piece.first_column] = {strip_of(i, begin), row.stride, columns_[i].width};
            end = std::min(end, begin - begin % row.extent + row.extent);
        }
        mode.kernels.join_rows({first.to + begin * first.step, first.step, end - begin}, strips,
                               piece.last_column - piece.first_column, mode.stores);
        begin = end;
    }
}

void JoinJob::run_part(const Mode& mode, std::size_t number, std::size_t begin,
                       std::size_t end) const {
    const Dimension row = rows_of_[number];
    while (begin < end) {
        const std::size_t until = std::min(begin - begin % row.extent + row.extent, end);
        mode.kernels.copy_rows({strip_of(number, begin), row.stride, until - begin, begin},
                               &columns_[number], 1, mode.stores);
        begin = until;
    }
}

TilesJob::TilesJob(const char* source, const Shape& shape, std::size_t closest, std::size_t width,
                   char* to)
    : source_(source), row_(shape.back()), column_(shape[closest]), width_(width), to_(to) {
    auto step = static_cast<std::ptrdiff_t>(width * row_.extent);
    for (std::size_t i = shape.size() - 1; i-- > 0;) {
        if (i == closest) {
            column_step_ = step;
        } else {
            outer_.insert(outer_.begin(), shape[i]);
            outer_to_.insert(outer_to_.begin(), {shape[i].extent, step});
        }
        step *= static_cast<std::ptrdiff_t>(shape[i].extent);
    }
    if (column_.stride < 0) {  // the same columns, in the order of the source
        const auto last = static_cast<std::ptrdiff_t>(column_.extent) - 1;
        source_ += last * column_.stride;
        to_ += last * column_step_;
        column_.stride = -column_.stride;
        column_step_ = -column_step_;
    }
    row_blocks_ = divide_up(row_.extent, tile_rows);
    column_blocks_ = divide_up(column_.extent, columns_of_tile(width));
}

Kind TilesJob::kind() const { return {true, false, 0, logarithm(width_), true, false}; }

std::vector<Piece> TilesJob::pieces(std::size_t bytes) const {
    const std::size_t columns = std::min(column_.extent, columns_of_tile(width_));
    const std::size_t tile = std::min(row_.extent, tile_rows) * columns * width_;
    return equal_pieces(units(), tile, bytes);
}

void TilesJob::run(const Mode& mode, const Piece& piece) const {
    for (std::size_t unit = piece.begin; unit < piece.end; ++unit) run_tile(mode, unit);
}

void TilesJob::run_tile(const Mode& mode, std::size_t unit) const {
    const std::size_t most = columns_of_tile(width_);
    const std::size_t first_column = unit % column_blocks_ * most;
    unit /= column_blocks_;
    const std::size_t first_row = unit % row_blocks_ * tile_rows;
    unit /= row_blocks_;
    Column columns[most_tile_columns];
    const std::size_t count = std::min(most, column_.extent - first_column);
    char* to = to_ + offset_of(outer_to_, unit);
    for (std::size_t i = 0; i < count; ++i) {
        const auto column = static_cast<std::ptrdiff_t>(first_column + i);
        columns[i] = {column * column_.stride, width_, to + column * column_step_, width_};
    }
    const char* from =
        source_ + offset_of(outer_, unit) + static_cast<std::ptrdiff_t>(first_row) * row_.stride;
    const std::size_t rows = std::min(tile_rows, row_.extent - first_row);
    mode.kernels.copy_rows({from, row_.stride, rows, first_row}, columns, count, mode.stores);
}

}  // namespace tensorsplit
