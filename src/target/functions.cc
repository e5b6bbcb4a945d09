// SPDX-License-Identifier: Apache-2.0
#include "target/functions.h"

#include <algorithm>
#include <future>
#include <span>
#include <thread>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "target/demangle.h"
#include "target/side_work.h"

namespace clew::target {

namespace {

// Below this, starting threads takes longer than demangling.
constexpr size_t kParallelFromNames = 20'000;
constexpr unsigned kThreadsMax = 8;
constexpr size_t kBlockNames = 65'536;

bool is_mangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R");
}

size_t leading_underscores(std::string_view name) {
  if (is_mangled(name)) return 0;
  return std::min(name.find_first_not_of('_'), name.size());
}

SymbolBinding binding_of(const RawSymbol& symbol) {
  if (symbol.is_local) return SymbolBinding::Local;
  return symbol.is_weak ? SymbolBinding::Weak : SymbolBinding::Global;
}

// Among the names of one address, the one a user would say: `malloc`, not `__libc_malloc`.
bool is_better_name(const RawSymbol& a, const RawSymbol& b) {
  const auto rank = [](const RawSymbol& symbol) {
    const bool is_clone = clone_suffix_at(symbol.name) != symbol.name.size();
    return std::tuple(symbol.is_untyped, symbol.is_old_version, leading_underscores(symbol.name),
                      symbol.is_local, is_clone, symbol.name.size(), symbol.name);
  };
  return rank(a) < rank(b);
}

bool is_cold(std::string_view name) {
  return name.find(".cold") != std::string_view::npos && clone_kind(name) == CloneKind::Cold;
}

// "foo.isra.0.cold.3" gives "foo.isra.0".
std::string_view parent_of_cold(std::string_view name) {
  return name.substr(0, name.rfind(".cold"));
}

// Records of unwind entries in step with ascending addresses.
class FdeCursor {
 public:
  explicit FdeCursor(std::span<const FdeRecord> fdes) : fdes_(fdes) {}

  // The one that starts at the address, else null. Addresses must not go down.
  const FdeRecord* at(uint64_t address) {
    while (next_ < fdes_.size() && fdes_[next_].address < address) {
      ++next_;
    }
    const bool found = next_ < fdes_.size() && fdes_[next_].address == address;
    return found ? &fdes_[next_] : nullptr;
  }
  // The start of the first one behind the address, or the largest number.
  [[nodiscard]] uint64_t start_behind(uint64_t address) const {
    const auto behind =
        std::upper_bound(fdes_.begin() + static_cast<std::ptrdiff_t>(next_), fdes_.end(), address,
                         [](uint64_t value, const FdeRecord& fde) { return value < fde.address; });
    return behind == fdes_.end() ? UINT64_MAX : behind->address;
  }

 private:
  std::span<const FdeRecord> fdes_;
  size_t next_ = 0;
};

// A function before its names are made: those of symbols [first, first + count).
struct Draft {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  size_t first = 0;
  size_t count = 0;  // 0: only an unwind entry knows it.
};

class FunctionBuilder {
 public:
  FunctionBuilder(SymbolList list, std::string_view module_name, ImageTables& tables)
      : list_(std::move(list)), module_name_(module_name), tables_(tables) {}

  void build() {
    sort_symbols();
    make_drafts();
    attach_cold_parts();
    add_unnamed_code();
    emit();
  }

 private:
  void sort_symbols() {
    auto& symbols = list_.symbols;
    std::sort(symbols.begin(), symbols.end(), [](const RawSymbol& a, const RawSymbol& b) {
      if (a.address != b.address) return a.address < b.address;
      return is_better_name(a, b);
    });
  }

  void make_drafts() {
    FdeCursor fdes(tables_.fdes);
    const auto& symbols = list_.symbols;
    for (size_t first = 0, next = 0; first < symbols.size(); first = next) {
      uint64_t size = 0;
      for (next = first; next < symbols.size() && symbols[next].address == symbols[first].address;
           ++next) {
        size = std::max(size, symbols[next].size_bytes);
      }
      const uint64_t address = symbols[first].address;
      const FdeRecord* fde = fdes.at(address);
      // A label without a type and without an unwind entry is no function.
      if (symbols[first].is_untyped && fde == nullptr) continue;
      const uint64_t next_symbol = next < symbols.size() ? symbols[next].address : UINT64_MAX;
      if (size == 0 && fde != nullptr) size = fde->size_bytes;
      if (size == 0) size = std::min(next_symbol, fdes.start_behind(address)) - address;
      drafts_.push_back({.address = address,
                         .size_bytes = clamp_to_section(address, size),
                         .first = first,
                         .count = next - first});
    }
  }

  [[nodiscard]] uint64_t clamp_to_section(uint64_t address, uint64_t size) const {
    const SectionRecord* section = tables_.code_section_at(address);
    return std::min(size, section->address + section->size_bytes - address);
  }

  // Cold parts leave the drafts and become ranges of their parents. Static functions of one name in
  // several source files are told apart by the file.
  void attach_cold_parts() {
    ColdParts colds;
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const RawSymbol& symbol = list_.symbols[drafts_[i].first];
      if (is_cold(symbol.name)) colds.emplace(parent_of_cold(symbol.name), i);
    }
    parents_.assign(drafts_.size(), kNoParent);
    std::vector<bool> exact(drafts_.size(), false);  // The parent is of the cold part's own file.
    for (size_t i = 0; !colds.empty() && i < drafts_.size(); ++i) {
      for (size_t s = drafts_[i].first; s < drafts_[i].first + drafts_[i].count; ++s)
        adopt_cold_parts(colds, i, list_.symbols[s], exact);
    }
  }

  using ColdParts = std::unordered_multimap<std::string_view, size_t>;  // Parent's name -> draft.

  // Makes `draft` the parent of the cold parts that name it by `name`.
  void adopt_cold_parts(const ColdParts& colds, size_t draft, const RawSymbol& name,
                        std::vector<bool>& exact) {
    const auto [begin, end] = colds.equal_range(name.name);
    for (auto cold = begin; cold != end; ++cold) {
      const RawSymbol& part = list_.symbols[drafts_[cold->second].first];
      const bool same_file = name.source_file == part.source_file;
      const bool possible = name.source_file == 0 || same_file;
      if (!possible || exact[cold->second] || cold->second == draft) continue;
      parents_[cold->second] = draft;
      exact[cold->second] = same_file;
    }
  }

  // Code that has an unwind entry but lies in no function and no cold part.
  void add_unnamed_code() {
    const size_t named = drafts_.size();
    uint64_t covered_to = 0;
    size_t next = 0;
    for (const FdeRecord& fde : tables_.fdes) {
      for (; next < named && drafts_[next].address <= fde.address; ++next) {
        covered_to = std::max(covered_to, drafts_[next].address + drafts_[next].size_bytes);
      }
      if (fde.address < covered_to) continue;
      drafts_.push_back({.address = fde.address, .size_bytes = fde.size_bytes});
      parents_.push_back(kNoParent);
      covered_to = fde.address + 1;  // Another entry for the same address adds nothing.
    }
  }

  void emit() {
    std::vector<size_t> order(drafts_.size());
    std::vector<std::vector<AddressRange>> parts;
    std::unordered_map<size_t, size_t> parts_of;  // Draft -> index in `parts`.
    for (size_t i = 0; i < drafts_.size(); ++i) {
      order[i] = i;
      if (parents_[i] == kNoParent) continue;
      const auto [entry, is_new] = parts_of.emplace(root_of(i), parts.size());
      if (is_new) parts.emplace_back();
      parts[entry->second].push_back({drafts_[i].address, drafts_[i].size_bytes});
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return drafts_[a].address < drafts_[b].address; });
    tables_.functions.reserve(drafts_.size());
    for (const size_t i : order) {
      if (parents_[i] != kNoParent) continue;
      FunctionRecord record{.address = drafts_[i].address, .size_bytes = drafts_[i].size_bytes};
      add_names(drafts_[i], record);
      const auto found = parts_of.find(i);
      if (found != parts_of.end()) add_cold(parts[found->second], record);
      tables_.functions.push_back(record);
    }
  }

  // A cold part's parent may itself be a cold part only in a broken file; one step is enough then.
  [[nodiscard]] size_t root_of(size_t draft) const {
    const size_t parent = parents_[draft];
    return parents_[parent] == kNoParent ? parent : parents_[parent];
  }

  void add_cold(std::vector<AddressRange>& ranges, FunctionRecord& record) {
    std::sort(ranges.begin(), ranges.end(),
              [](const AddressRange& a, const AddressRange& b) { return a.address < b.address; });
    record.first_cold = static_cast<uint32_t>(tables_.cold.size());
    record.cold_count = static_cast<uint32_t>(ranges.size());
    tables_.cold.insert(tables_.cold.end(), ranges.begin(), ranges.end());
  }

  // The readable forms of the names of some symbols, in one text.
  struct Share {
    std::string text;
    std::vector<std::pair<TextRecord, TextRecord>> names;  // Demangled, plain; in order of symbols.
  };

  static void demangle_share(std::span<const RawSymbol> symbols, Share& share) {
    Demangler demangler;
    share.text.clear();
    share.names.assign(symbols.size(), {});
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (!is_mangled(symbols[i].name)) continue;
      const Demangled name = demangler.demangle(symbols[i].name);
      if (name.text.empty() || share.text.size() + name.text.size() > kTextMaxBytes) continue;
      const auto offset = static_cast<uint32_t>(share.text.size());
      const auto plain_at = static_cast<uint32_t>(name.plain.data() - name.text.data());
      share.names[i] = {{offset, static_cast<uint32_t>(name.text.size())},
                        {offset + plain_at, static_cast<uint32_t>(name.plain.size())}};
      share.text += name.text;
    }
  }

  // Demangles the block of symbols that `index` is in, on all CPUs. Block by block, so that the
  // readable names are never all in memory twice.
  void demangle_block(size_t index) {
    const std::span<const RawSymbol> symbols = list_.symbols;
    block_first_ = index / kBlockNames * kBlockNames;
    const auto block =
        symbols.subspan(block_first_, std::min(kBlockNames, symbols.size() - block_first_));
    const unsigned cpus = std::clamp(std::thread::hardware_concurrency(), 1U, kThreadsMax);
    const size_t count = block.size() < kParallelFromNames ? 1 : cpus;
    share_size_ = block.size() / count + 1;
    shares_.resize(count);
    std::vector<std::future<void>> others;
    for (size_t i = 0; i < count; ++i) {
      const size_t first = std::min(i * share_size_, block.size());
      const auto part = block.subspan(first, std::min(share_size_, block.size() - first));
      if (i + 1 == count) {
        demangle_share(part, shares_[i]);
      } else {
        others.push_back(
            start_beside([part, &share = shares_[i]] { demangle_share(part, share); }));
      }
    }
    for (std::future<void>& other : others) {
      other.get();
    }
  }

  void add_names(const Draft& draft, FunctionRecord& record) {
    record.first_name = static_cast<uint32_t>(tables_.names.size());
    if (draft.count == 0) {
      record.origin = FunctionOrigin::UnwindEntry;
      const TextRecord name =
          tables_.add_text(fmt::format("{}+{:#x}", module_name_, draft.address));
      tables_.names.push_back({.linkage = name, .demangled = name, .plain = name});
    } else {
      record.origin = list_.symbols[draft.first].origin;
    }
    for (size_t i = draft.first; i < draft.first + draft.count; ++i) {
      const RawSymbol& symbol = list_.symbols[i];
      record.is_ifunc |= static_cast<uint8_t>(symbol.is_ifunc);
      // The same name is in .symtab and .dynsym; sorting has brought them together.
      const bool again = i > draft.first && list_.symbols[i - 1].name == symbol.name;
      if (!again && has_room(symbol)) tables_.names.push_back(make_name(i));
    }
    record.name_count = static_cast<uint32_t>(tables_.names.size()) - record.first_name;
    if (record.name_count == 0) {
      tables_.names.push_back({});
      record.name_count = 1;
    }
  }

  [[nodiscard]] bool has_room(const RawSymbol& symbol) const {
    return tables_.text.size() + symbol.name.size() + 2 * kMangledMaxBytes < kTextMaxBytes;
  }

  NameRecord make_name(size_t index) {
    const std::string_view linkage = list_.symbols[index].name;
    const bool in_block = index >= block_first_ && index - block_first_ < kBlockNames;
    if (shares_.empty() || !in_block) demangle_block(index);
    const Share& share = shares_[(index - block_first_) / share_size_];
    const auto [demangled, plain] = share.names[(index - block_first_) % share_size_];
    NameRecord name;
    name.linkage = tables_.add_text(linkage);
    name.binding = binding_of(list_.symbols[index]);
    const CloneKind kind = clone_kind(linkage);
    const bool is_part = kind == CloneKind::Part || kind == CloneKind::Cold;
    const std::string_view suffix = linkage.substr(clone_suffix_at(linkage));
    if (demangled.size_bytes == 0) {
      name.demangled = name.linkage;
      name.plain = name.linkage;
      if (!is_part) name.plain.size_bytes -= static_cast<uint32_t>(suffix.size());
      return name;
    }
    const std::string_view text = share.text;
    name.demangled = tables_.add_text(text.substr(demangled.offset, demangled.size_bytes));
    name.plain = {name.demangled.offset + (plain.offset - demangled.offset), plain.size_bytes};
    if (is_part) {  // A part is not the function: it must not answer to the function's name.
      name.plain = tables_.add_text(
          fmt::format("{}{}", text.substr(plain.offset, plain.size_bytes), suffix));
    }
    return name;
  }

  static constexpr size_t kNoParent = SIZE_MAX;

  SymbolList list_;
  std::string_view module_name_;
  ImageTables& tables_;
  std::vector<Draft> drafts_;
  std::vector<size_t> parents_;  // Of a draft that is a cold part.
  std::vector<Share> shares_;    // Of the block of symbols from block_first_ on.
  size_t block_first_ = 0;
  size_t share_size_ = 1;
};

}  // namespace

void make_functions(SymbolList list, std::string_view module_name, ImageTables& tables) {
  FunctionBuilder(std::move(list), module_name, tables).build();
}

}  // namespace clew::target
