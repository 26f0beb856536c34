#pragma once
// Aligned tables for people.

#include <optional>
#include <string>
#include <vector>

namespace aiq::cli {

// Meaning of a cell; a colour where colours are on.
enum class Tone { plain, good, bad, warn, faint };
// `text` in the colour of `tone` (an ANSI sequence), or as it is.
[[nodiscard]] std::string toned(const std::string& text, Tone tone, bool color);
// Tone of a job's state, a vendor's state or an attempt's outcome.
[[nodiscard]] Tone tone_of(const std::string& state);

struct Column {
  std::string title;
  bool right = false;    // numbers
  bool shrinks = false;  // may be cut to make the table fit
  bool extra = false;    // may be left out to make it fit, the last one first
};

struct Cell {
  Cell(std::string cell_text, Tone cell_tone = Tone::plain)
      : text(std::move(cell_text)), tone(cell_tone) {}
  std::string text;
  Tone tone = Tone::plain;
};

// Rows are added page by page; each take() lays out what came since the last one, the first with
// the titles. Columns keep at least the width they had on earlier pages. Where the table is too
// wide, columns without a word to say are left out first; when a later page has one, the titles
// come again.
class Table {
 public:
  // `width`: columns of the terminal, nullopt = unlimited (nothing is cut then).
  Table(std::vector<Column> columns, std::optional<std::size_t> width, bool color);
  void add(std::vector<Cell> row);  // as many cells as there are columns
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Lines that end with a newline; none have trailing spaces.
  [[nodiscard]] std::string take();

 private:
  void fit();
  [[nodiscard]] std::size_t total() const;
  [[nodiscard]] bool says_nothing(std::size_t column) const;
  bool shrink(std::size_t least);
  void append_line(std::string& out, const std::vector<Cell>& row) const;

  std::vector<Column> columns_;
  std::optional<std::size_t> width_;
  bool color_;
  std::vector<std::size_t> widths_;
  std::vector<bool> shown_, titled_;  // titled_: as the last titles had it
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace aiq::cli
