// SPDX-License-Identifier: Apache-2.0
// Some work as programs in C++ do it, with much of the standard library in it: reads a text of
// expressions, evaluates them, sorts, counts, and throws where one has no value. Argument 1: how
// many rounds. Then it faults.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <regex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

uint64_t seed = 1;
volatile uint64_t result;
int* volatile nowhere;  // Null, as only the machine knows.

unsigned any(unsigned below) {
  seed = seed * 6364136223846793005U + 1442695040888963407U;
  return static_cast<unsigned>(seed >> 33) % below;
}

struct NoValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Names = std::map<std::string, int64_t>;

struct Node {
  virtual ~Node() = default;
  [[nodiscard]] virtual int64_t value(const Names& names) const = 0;
};
using NodePointer = std::unique_ptr<Node>;

struct Number final : Node {
  explicit Number(int64_t number) : number(number) {}
  [[nodiscard]] int64_t value(const Names& /*names*/) const override { return number; }
  int64_t number;
};

struct Name final : Node {
  explicit Name(std::string name) : name(std::move(name)) {}
  [[nodiscard]] int64_t value(const Names& names) const override {
    const auto found = names.find(name);
    if (found == names.end()) throw NoValue("no name " + name);
    return found->second;
  }
  std::string name;
};

struct Pair final : Node {
  Pair(char sign, NodePointer left, NodePointer right)
      : sign(sign), left(std::move(left)), right(std::move(right)) {}
  [[nodiscard]] int64_t value(const Names& names) const override {
    const int64_t a = left->value(names);
    const int64_t b = right->value(names);
    switch (sign) {
      case '+':
        return a + b;
      case '-':
        return a - b;
      case '*':
        return (a * b) % 100003;
      case '<':
        return a < b ? 1 : 0;
      case '/':
        if (b == 0) throw std::domain_error("division");
        return a / b;
      default:
        throw NoValue("no sign");
    }
  }
  char sign;
  NodePointer left, right;
};

class Reader {
 public:
  explicit Reader(const std::string& text) {
    static const std::regex token("\\s*([0-9]+|[a-z]+|[-+*/<()])");
    for (std::sregex_iterator at(text.begin(), text.end(), token), end; at != end; ++at)
      tokens_.push_back((*at)[1].str());
  }
  NodePointer sum() {
    NodePointer left = product();
    while (is_any("+-<")) {
      const char sign = tokens_[at_++][0];
      left = std::make_unique<Pair>(sign, std::move(left), product());
    }
    return left;
  }

 private:
  NodePointer product() {
    NodePointer left = single();
    while (is_any("*/")) {
      const char sign = tokens_[at_++][0];
      left = std::make_unique<Pair>(sign, std::move(left), single());
    }
    return left;
  }
  NodePointer single() {
    if (at_ == tokens_.size()) throw std::invalid_argument("end");
    const std::string& token = tokens_[at_++];
    if (token == "(") {
      NodePointer inner = sum();
      if (!is_any(")")) throw std::invalid_argument("no )");
      ++at_;
      return inner;
    }
    if (token[0] >= '0' && token[0] <= '9') return std::make_unique<Number>(std::stoll(token));
    if (token[0] >= 'a' && token[0] <= 'z') return std::make_unique<Name>(token);
    throw std::invalid_argument("at " + token);
  }
  [[nodiscard]] bool is_any(const char* signs) const {
    return at_ < tokens_.size() && tokens_[at_].size() == 1 &&
           std::string(signs).find(tokens_[at_][0]) != std::string::npos;
  }
  std::vector<std::string> tokens_;
  size_t at_ = 0;
};

std::string expression(int depth) {
  static const char* const kNames[] = {"a", "bee", "sea", "dee", "e"};
  if (depth == 0 || any(4) == 0)
    return any(2) == 0 ? std::to_string(any(50)) : std::string(kNames[any(5)]);
  std::string text = expression(depth - 1) + " " + "+-*/<"[any(5)] + " " + expression(depth - 1);
  if (any(3) == 0) text = "(" + text + ")";
  if (any(40) == 0) text += " + )";
  return text;
}

using Outcome = std::variant<int64_t, std::string, std::vector<int>>;

Outcome evaluate(const Names& names, const std::string& text) {
  try {
    return Reader(text).sum()->value(names);
  } catch (const NoValue& error) {
    return std::string(error.what());
  } catch (const std::domain_error&) {
    std::vector<int> digits;
    for (const char one : text)
      if (one >= '0' && one <= '9') digits.push_back(one - '0');
    if (digits.size() > 3) throw;
    return digits;
  }
}

int order(const void* left, const void* right) {
  const int a = *static_cast<const int*>(left);
  const int b = *static_cast<const int*>(right);
  return a < b ? -1 : static_cast<int>(a > b);
}

uint64_t weigh(std::vector<int> digits) {
  if (digits.empty()) return 1;
  std::qsort(digits.data(), digits.size(), sizeof digits[0], order);
  std::priority_queue<int> queue(digits.begin(), digits.end());
  uint64_t sum = 0;
  while (!queue.empty()) {
    sum = sum * 3 + static_cast<uint64_t>(queue.top());
    queue.pop();
  }
  return sum;
}

uint64_t round(Names& names, std::unordered_map<std::string, int>& counts) {
  uint64_t sum = 0;
  const std::string text = expression(4);
  try {
    const Outcome outcome = evaluate(names, text);
    sum += std::visit(
        [&](const auto& value) -> uint64_t {
          using Value = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, int64_t>) {
            names["abcdefgh" + std::to_string(value % 7)] = value;
            names[any(2) == 0 ? "sea" : "dee"] = value % 1000;
            return static_cast<uint64_t>(value);
          } else if constexpr (std::is_same_v<Value, std::string>) {
            return static_cast<uint64_t>(++counts[value]);
          } else {
            return weigh(value);
          }
        },
        outcome);
  } catch (const std::exception& error) {
    ++counts[error.what()];
    if (any(8) == 0) names.erase("sea");
  }
  return sum;
}

uint64_t finish(const Names& names, const std::unordered_map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int64_t>> all(names.begin(), names.end());
  for (const auto& one : counts)
    all.emplace_back(one.first, one.second);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const std::function<uint64_t(uint64_t, const std::pair<std::string, int64_t>&)> add =
      [](uint64_t sum, const auto& one) {
        return sum * 31 + one.first.size() + static_cast<uint64_t>(one.second);
      };
  return std::accumulate(all.begin(), all.end(), uint64_t{0}, add);
}

}  // namespace

int main(int words_count, char** words) {
  if (words_count != 2) return 2;
  const int rounds = std::atoi(words[1]);
  Names names = {{"a", 3}, {"bee", 0}, {"e", 11}};
  std::unordered_map<std::string, int> counts;
  for (int i = 0; i < rounds; ++i)
    result = result + round(names, counts);
  result = result + finish(names, counts);
  *nowhere = static_cast<int>(result);
  return 3;
}
