// SPDX-License-Identifier: Apache-2.0
// Dynamic variables (abi/d_dynamic.h) and the bytes of globals.
#include "abi/d_dynamic.h"
#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {
namespace {

[[gnu::always_inline]] inline uint64_t table_bytes() {
  return number(d_n_dynamic_buckets) * abi::dynamic_bucket_bytes(number(d_n_dynamic_entry_bytes));
}

[[gnu::always_inline]] inline uint64_t in_table(uint64_t offset) {
  return bounded(offset, table_bytes());
}

// The table with what is looked for but its key.
template <typename Self>
class TableOf : public abi::DynamicTable<Self> {
 public:
  [[gnu::always_inline]] TableOf(DWindow* w, uint64_t identity) : w_(w), identity_(identity) {}

  [[gnu::always_inline]] uint64_t zero() const { return kernel::zero(w_); }
  [[gnu::always_inline]] uint64_t buckets() const { return number(d_n_dynamic_buckets); }
  [[gnu::always_inline]] uint64_t entry_bytes() const { return number(d_n_dynamic_entry_bytes); }
  [[gnu::always_inline]] uint64_t key_bytes_max() const { return number(d_n_dynamic_key_bytes); }
  [[gnu::always_inline]] uint64_t identity() const { return identity_; }
  [[gnu::always_inline]] uint64_t& word(uint64_t offset, uint64_t index) const {
    return *reinterpret_cast<uint64_t*>(dynamic() + offset + masked(index * 8, 0x1FF8));
  }

 protected:
  DWindow* w_;
  uint64_t identity_;
};

// The key is the key area of the window, with its variable's number and the thread.
class Table : public TableOf<Table> {
 public:
  [[gnu::always_inline]] Table(DWindow* w, uint64_t identity, uint64_t key_words, uint64_t bucket)
      : TableOf(w, identity), key_words_(key_words), bucket_(bucket) {}

  [[gnu::always_inline]] uint64_t key_words() const { return key_words_; }
  [[gnu::always_inline]] uint64_t bucket() const { return bucket_; }
  [[gnu::always_inline]] uint64_t key_word(uint64_t index) const {
    return *reinterpret_cast<const uint64_t*>(reinterpret_cast<const uint8_t*>(w_) +
                                              abi::kDKeyOffset + masked(index * 8, 0xFF8));
  }
  [[gnu::always_inline]] abi::DFound find() const;
  [[gnu::always_inline]] abi::DFound claim_new() const;

 private:
  uint64_t key_words_;
  uint64_t bucket_;
};

// A variable without a key (self->x): so little is to be compared that nothing is called.
class ThreadTable : public TableOf<ThreadTable> {
 public:
  [[gnu::always_inline]] ThreadTable(DWindow* w, uint64_t identity) : TableOf(w, identity) {
    bucket_ = in_table(find_bucket());  // Older verifiers lose its bounds in the product.
  }

  [[gnu::always_inline]] uint64_t key_words() const { return 0; }
  [[gnu::always_inline]] uint64_t key_word(uint64_t) const { return 0; }
  [[gnu::always_inline]] uint64_t bucket() const { return bucket_; }
  [[gnu::always_inline]] abi::DFound find() const { return find_here(); }
  [[gnu::always_inline]] abi::DFound claim_new() const { return claim_new_here(); }

 private:
  uint64_t bucket_ = 0;
};

// A found entry's state comes back in the window.
[[gnu::always_inline]] inline uint64_t give(DWindow* w, const abi::DFound& found) {
  w->header.second_result = found.state;
  return found.offset;
}

}  // namespace

extern "C" {

[[gnu::noinline]] uint64_t d_dynamic_bucket(DWindow* w, uint64_t identity, uint64_t key_words) {
  return Table(w, identity, key_words, 0).find_bucket();
}

[[gnu::noinline]] uint64_t d_dynamic_find(DWindow* w, uint64_t identity, uint64_t key_words,
                                          uint64_t bucket) {
  return give(w, Table(w, identity, key_words, in_table(bucket)).find_here());
}

[[gnu::noinline]] uint64_t d_dynamic_claim(DWindow* w, uint64_t identity, uint64_t key_words,
                                           uint64_t bucket) {
  return give(w, Table(w, identity, key_words, in_table(bucket)).claim_new_here());
}

}  // extern "C"

namespace {

[[gnu::always_inline]] inline abi::DFound Table::find() const {
  const uint64_t offset = d_dynamic_find(w_, identity_, key_words_, bucket_);
  return {in_table(offset), w_->header.second_result};
}

[[gnu::always_inline]] inline abi::DFound Table::claim_new() const {
  const uint64_t offset = d_dynamic_claim(w_, identity_, key_words_, bucket_);
  return {in_table(offset), w_->header.second_result};
}

[[gnu::always_inline]] inline const abi::DVariable& descriptor(uint64_t variable) {
  return variables()[index_below(variable, number(d_n_variables))];
}

// Threads of one number in two name spaces, and a number that is used again: as the kernel has it,
// one thread is one thread id of the first name space. The idle threads all have number 0: each CPU
// has one.
inline constexpr uint64_t kIdleThreads = uint64_t{1} << 31;

[[gnu::always_inline]] inline uint64_t current_thread() {
  const uint64_t thread = process_and_thread() & 0xFFFF'FFFF;
  return thread != 0 ? thread : kIdleThreads | processor();
}

[[gnu::always_inline]] inline uint64_t identity_of(const abi::DVariable& d, uint64_t variable) {
  const uint64_t thread = d.is_thread != 0 ? current_thread() : 0;
  return (variable + 1) << 32 | thread;
}

[[gnu::always_inline]] inline Table table_of(DWindow* w, uint64_t variable) {
  const abi::DVariable& d = descriptor(variable);
  const uint64_t identity = identity_of(d, variable);
  const uint64_t key_words = d.key_bytes / 8;
  return Table(w, identity, key_words, in_table(d_dynamic_bucket(w, identity, key_words)));
}

// `use` gets the table that has the variable.
template <typename Use>
[[gnu::always_inline]] inline auto with_table(DWindow* w, uint64_t variable, Use use) {
  const abi::DVariable& d = descriptor(variable);
  if (d.key_bytes == 0) return use(ThreadTable(w, identity_of(d, variable)));
  return use(table_of(w, variable));
}

[[gnu::always_inline]] inline uint64_t drop(DWindow* w) {
  abi::add_word(shared().losses.dynamic, 1);
  return fail(w, DFault::Dropped, 0);
}

// Behind the globals are kCopyBytesMax bytes that nobody reads.
[[gnu::always_inline]] inline bool is_global(uint64_t offset, uint64_t size) {
  return offset < number(d_n_globals_bytes) && size <= kCopyBytesMax;
}

}  // namespace

extern "C" {

uint64_t d_variable_load(DWindow* w, uint64_t variable) {
  return with_table(w, variable, [](const auto& table) { return table.load(); });
}

uint64_t d_variable_store(DWindow* w, uint64_t variable, uint64_t value) {
  const auto put = [value](uint64_t offset) {
    *reinterpret_cast<uint64_t*>(dynamic() + offset) = value;
  };
  const bool stored =
      with_table(w, variable, [put](const auto& table) { return table.store(put); });
  return stored ? 0 : drop(w);
}

uint64_t d_variable_load_bytes(DWindow* w, uint64_t variable, uint64_t dst) {
  const uint64_t size = descriptor(variable).value_bytes;
  const bool loaded = table_of(w, variable).load_bytes([w, dst, size](uint64_t offset) {
    copy_own(at(w, dst), size, dynamic() + offset);
  });
  if (!loaded) clear(w, dst, size);
  return loaded ? 1 : 0;
}

uint64_t d_variable_store_bytes(DWindow* w, uint64_t variable, uint64_t src) {
  const uint64_t size = descriptor(variable).value_bytes;
  const bool stored = table_of(w, variable).store([w, src, size](uint64_t offset) {
    copy_own(dynamic() + offset, size, at(w, src));
  });
  return stored ? 0 : drop(w);
}

uint64_t d_variable_delete(DWindow* w, uint64_t variable) {
  return with_table(w, variable, [](const auto& table) {
    table.remove();
    return uint64_t{0};
  });
}

// What strtok() goes on with, of this thread: where, and in what text. It is kept in a variable of
// its own. Loading says whether there is one.
uint64_t d_token_load(DWindow* w) {
  const bool loaded = table_of(w, number(d_n_token_variable)).load_bytes([w](uint64_t offset) {
    w->header.token_offset = *reinterpret_cast<const uint64_t*>(dynamic() + offset);
    copy_own(w->token_text, number(d_n_string_bytes), dynamic() + offset + 8);
  });
  return loaded ? 1 : 0;
}

uint64_t d_token_store(DWindow* w) {
  const bool stored = table_of(w, number(d_n_token_variable)).store([w](uint64_t offset) {
    *reinterpret_cast<uint64_t*>(dynamic() + offset) = w->header.token_offset;
    copy_own(dynamic() + offset + 8, number(d_n_string_bytes), w->token_text);
  });
  return stored ? 1 : drop(w);
}

uint64_t d_global_load_bytes(DWindow* w, uint64_t dst, uint64_t offset, uint64_t size) {
  if (is_global(offset, size)) copy_own(at(w, dst), size, globals() + offset);
  return 0;
}

uint64_t d_global_store_bytes(DWindow* w, uint64_t offset, uint64_t src, uint64_t size) {
  if (is_global(offset, size)) copy_own(globals() + offset, size, at(w, src));
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel
