// SPDX-License-Identifier: Apache-2.0
// Baggage that leaves the machine: its bytes (causal/wire.h), and behind them 16 bytes of
// HMAC-SHA256 (RFC 2104, cut as in its section 5) over all of them by a key of the tenant whose
// request it is. Inside of a machine, where the owner of the memory is known, it is not needed.
//
// Who has the key can say anything about the tenant's requests, and nothing about another's. What
// was recorded and is sent again is what the first one was, until it expires: stamps and sets make
// of it what came twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"
#include "causal/baggage.h"
#include "causal/wire.h"

namespace clew::causal {

inline constexpr size_t kAuthenticationBytes = 16;
inline constexpr size_t kSecretBytes = 32;
inline constexpr size_t kKeysMax = 16;
inline constexpr size_t kSealedBytesMax = kBaggageBytesMax + kAuthenticationBytes;

struct Key {
  uint32_t tenant = 0;
  uint32_t epoch = 0;  // Not 0; a tenant's newer keys have greater ones.
  std::array<std::byte, kSecretBytes> secret{};
};

// The keys that are valid now. Secrets are wiped when they go.
class Keys {
 public:
  Keys() = default;
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys();

  // Limit: more than kKeysMax. Refused: epoch 0, or one that the tenant has.
  Expected<void> add(const Key& key);
  // What it has authenticated is unknown from now on.
  void remove(uint32_t tenant, uint32_t epoch);

  // Null: none.
  [[nodiscard]] const Key* newest(uint32_t tenant) const;
  [[nodiscard]] const Key* find(uint32_t tenant, uint32_t epoch) const;
  [[nodiscard]] std::span<const Key> keys() const { return keys_.values(); }

 private:
  FixedList<Key, kKeysMax> keys_;
};

// Whose bytes are expected, and when.
struct Receiver {
  uint32_t tenant = 0;
  uint32_t now_s = 0;  // Since 1970.
};

// Writes baggage by the newest key of a tenant and gives its size; room for all: kSealedBytesMax.
// None: the tenant has no key, so the baggage stays here.
[[nodiscard]] std::optional<size_t> seal(const Baggage& baggage, const Keys& keys, uint32_t tenant,
                                         std::span<std::byte> room);

// Reads what came from another machine. Whatever is wrong with it is counted, and the baggage is
// empty; no byte behind the header's is looked at before the bytes are known to be the tenant's.
Refusal open(std::span<const std::byte> bytes, const Keys& keys, const Receiver& receiver,
             Baggage& baggage, Refusals& refusals);

}  // namespace clew::causal
