// SPDX-License-Identifier: Apache-2.0
// SiteJournal: the sites and layers of an arena (abi/journal.h), copied and checked, with an index.
// The target can write the arena, so each record is read from it once; we write both.
// Records are made whole before they count, so that a reader of the journal never sees half of one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "abi/journal.h"
#include "base/error.h"
#include "code/window.h"
#include "inline/arena.h"

namespace clew::inline_ {

class SiteJournal {
 public:
  // Borrows the arena. Records that make no sense are left out. Sees what other tracers wrote
  // until now: made anew each time the arena's lock is taken.
  explicit SiteJournal(const Arena& arena);

  [[nodiscard]] std::optional<uint32_t> find(uint64_t address) const;
  // Does the range meet the bytes of a site other than the one that begins at `begin`?
  [[nodiscard]] bool meets_other(uint64_t begin, uint64_t end) const;
  // Sites in use, ascending by address.
  [[nodiscard]] const std::map<uint64_t, uint32_t>& by_address() const { return by_address_; }
  // Layers of a site, the lowest first.
  [[nodiscard]] const std::vector<uint32_t>& layers_of(uint32_t site) const;

  [[nodiscard]] const abi::SiteRecord& site(uint32_t index) const { return sites_[index]; }
  [[nodiscard]] const abi::LayerRecord& layer(uint32_t index) const { return records_[index]; }

  Expected<uint32_t> add_site(const abi::SiteRecord& record);
  // Only while the text is the program's: for a moment the record counts as free.
  void describe_site(uint32_t index, const abi::SiteRecord& record);
  void set_patched(uint32_t index);
  Expected<uint32_t> add_layer(const abi::LayerRecord& record);
  void drop_layer(uint32_t index);
  void drop_site(uint32_t index);
  void drop_site_with_layers(uint32_t index);

  // The layer whose code contains this address of the target.
  [[nodiscard]] std::optional<uint32_t> layer_at(uint64_t address) const;

  // Writes the link slots and copy heads that make `layers` (lowest first) one chain.
  void relink(std::span<const uint32_t> layers) const;

 private:
  void write_code(uint64_t address, std::span<const uint8_t> bytes) const;
  void restore_copies(std::span<const uint32_t> layers, uint32_t count) const;
  void relink_instruction(std::span<const uint32_t> layers, uint32_t instruction) const;

  const Arena& arena_;
  std::vector<abi::SiteRecord> sites_;
  std::vector<abi::LayerRecord> records_;
  std::map<uint64_t, uint32_t> by_address_;
  std::map<uint32_t, std::vector<uint32_t>> layers_;  // By site.
  std::map<uint64_t, uint32_t> layer_by_address_;
  std::vector<uint32_t> free_sites_;
  std::vector<uint32_t> free_layers_;
};

// A window at load time addresses as a record, and back to link time addresses.
abi::SiteRecord record_of(const code::Window& window, uint64_t load_bias);
code::Window window_of(const abi::SiteRecord& record);

// Null when nothing is mapped there. Ascending.
const target::Mapping* mapping_at(std::span<const target::Mapping> maps, uint64_t address);
// What is mapped at the site.
void record_mapping(const target::Mapping& mapping, abi::SiteRecord& site);

// Is what was mapped at the site when it was installed still there? Its address may belong to
// another module by now.
bool is_mapped_as_recorded(std::span<const target::Mapping> maps, const abi::SiteRecord& site);

// Behind the last byte that belongs to the site at its own place, padding included.
uint64_t end_of(const abi::SiteRecord& record);
bool serves_both_ways(const abi::SiteRecord& record);
// From which byte on its first patch tells whether it is there: a stranger's trap, which the kernel
// sets also where a file is mapped anew, may be at the function's first.
size_t told_from(const abi::SiteRecord& record);

// Is the window of the record this window?
bool same_window(const abi::SiteRecord& record, const code::Window& window);

}  // namespace clew::inline_
