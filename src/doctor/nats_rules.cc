// SPDX-License-Identifier: Apache-2.0
#include "doctor/nats_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/nats_address.h"
#include "cluster/subject.h"

namespace clew::doctor {
namespace {

using Kind = SettingValue::Kind;
using Names = std::vector<std::string_view>;

constexpr size_t kToldMax = 8;  // Of one rule.

// Whether `value` says yes, as the server reads it.
bool is_true(const SettingValue* value) {
  if (value == nullptr) return false;
  std::string text = value->text;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char one) { return static_cast<char>(std::tolower(one)); });
  return text == "true" || text == "yes" || text == "on";
}

const SettingValue* last_of(const SettingValue& map, const Names& names) {
  for (const std::string_view name : names) {
    if (const SettingValue* const found = map.last(name)) return found;
  }
  return nullptr;
}

// One place after another where something is.
class Places {
 public:
  explicit Places(const Settings& settings) : settings_(settings) {}
  void add(const SettingValue& at, const std::string& what) {
    if (++count_ <= kToldMax) texts_.push_back(fmt::format("{}: {}", settings_.place(at), what));
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    const std::string more =
        count_ > kToldMax ? fmt::format("; and {} more", count_ - kToldMax) : "";
    return fmt::format("{}{}", fmt::join(texts_, "; "), more);
  }

 private:
  const Settings& settings_;
  std::vector<std::string> texts_;
  size_t count_ = 0;
};

// "host:port", "host", "port": the host; empty: all addresses.
std::string host_of(const std::string& place) {
  if (place.find_first_not_of("0123456789") == std::string::npos) return "";
  const size_t colon = place.rfind(':');
  const bool has_port = colon != std::string::npos && place.find(']', colon) == std::string::npos;
  std::string host = has_port ? place.substr(0, colon) : place;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

class Rules {
 public:
  Rules(const Settings& settings, Findings& findings)
      : settings_(settings), root_(settings.root), findings_(findings) {}

  void check() {
    who_is_let_in();
    nobody_else();
    read_users();
    lists_of_denied();
    api();
    whole_rights();
    names_of_nodes();
    other_listeners();
    on_the_way();
    monitoring();
    jetstream();
  }

 private:
  struct User {
    std::string name;
    const SettingValue* at;
    const SettingValue* permissions;  // Null: none.
  };
  // Of one user, or of all: publish or subscribe.
  struct Grant {
    std::string whose;
    const SettingValue* at;
    bool publishes;
    std::vector<const SettingValue*> allowed;  // Subjects,
    bool has_list = false;                     // if there is a list.
    bool has_denied = false;
  };

  void report(std::string_view check, const Places& places, std::string fine, std::string refused,
              std::string remedy) {
    if (places.empty()) {
      findings_.ok(check, std::move(fine));
      return;
    }
    findings_.problem(
        check,
        {.detail = places.text(), .refused = std::move(refused), .remedy = std::move(remedy)});
  }

  void who_is_let_in() {
    Places places(settings_);
    const SettingValue* const accounts = root_.last("accounts");
    for (const SettingValue* const beside : root_.all("authorization")) {
      if (accounts != nullptr) places.add(*beside, "'authorization' stands beside 'accounts'");
    }
    if (accounts == nullptr && root_.last("authorization") == nullptr) {
      const bool has_others = last_of(root_, {"operator", "resolver", "trusted_keys"}) != nullptr;
      if (!has_others) places.add(root_, "there are no 'accounts': everybody is let in");
    }
    report("accounts", places, "all users are in accounts",
           "whoever reaches the server may be let in without a credential (CVE-2023-47090)",
           "put all users into 'accounts'");
  }

  void nobody_else() {
    Places places(settings_);
    each_map(root_, [&](const SettingValue& map) {
      for (const SettingValue* const found : map.all("no_auth_user"))
        places.add(*found, fmt::format("'no_auth_user' is {}", found->text));
    });
    report("no-auth-user", places, "nobody is let in without a credential",
           "whoever reaches the server is that user, on other listeners, too (CVE-2026-58253)",
           "take it out");
  }

  // --- users -------------------------------------------------------------------------------------

  static void each_map(const SettingValue& value,
                       const std::function<void(const SettingValue&)>& visit) {
    if (value.kind == Kind::Map) visit(value);
    for (const SettingValue& item : value.items)
      each_map(item, visit);
    for (const Setting& setting : value.settings)
      each_map(setting.value, visit);
  }

  void add_users(const SettingValue& of) {
    const SettingValue* const usual = last_of(of, {"default_permissions"});
    if (usual != nullptr) add_grants("default_permissions", *usual);
    for (const SettingValue* const users : of.all("users")) {
      for (const SettingValue& user : users->items) {
        const SettingValue* const name = last_of(user, {"user", "username", "nkey"});
        const SettingValue* const own =
            last_of(user, {"permissions", "permission", "authorization"});
        users_.push_back({.name = name == nullptr ? "?" : name->text,
                          .at = &user,
                          .permissions = own == nullptr ? usual : own});
        if (own != nullptr) add_grants(users_.back().name, *own);
      }
    }
    const SettingValue* const alone = last_of(of, {"user", "username", "token"});
    if (alone != nullptr && of.last("users") == nullptr)
      users_.push_back({.name = alone->text, .at = alone, .permissions = usual});
  }

  void read_users() {
    for (const SettingValue* const accounts : root_.all("accounts")) {
      for (const Setting& account : accounts->settings) {
        // Of the server itself: its users manage it.
        if (account.name != "$SYS") add_users(account.value);
      }
    }
    for (const SettingValue* const authorization : root_.all("authorization"))
      add_users(*authorization);
  }

  void add_grants(const std::string& whose, const SettingValue& permissions) {
    for (const bool publishes : {true, false}) {
      Grant grant{.whose = whose, .at = &permissions, .publishes = publishes, .allowed = {}};
      const Names names =
          publishes ? Names{"publish", "pub", "import"} : Names{"subscribe", "sub", "export"};
      for (const std::string_view name : names) {
        for (const SettingValue* const value : permissions.all(name))
          add_subjects(*value, grant);
      }
      grants_.push_back(std::move(grant));
    }
  }

  static void add_list(const SettingValue& value, Grant& grant) {
    grant.has_list = true;
    if (value.kind == Kind::Text) grant.allowed.push_back(&value);
    for (const SettingValue& item : value.items)
      grant.allowed.push_back(&item);
  }

  static void add_subjects(const SettingValue& value, Grant& grant) {
    if (value.kind != Kind::Map) {
      add_list(value, grant);
      return;
    }
    for (const SettingValue* const allowed : value.all("allow"))
      add_list(*allowed, grant);
    grant.has_denied = grant.has_denied || !value.all("deny").empty();
  }

  void lists_of_denied() {
    Places places(settings_);
    for (const Grant& grant : grants_) {
      if (grant.has_denied)
        places.add(*grant.at, fmt::format("user {} has a list of what is denied", grant.whose));
    }
    report("deny-lists", places, "permissions are lists of what is allowed",
           "a queue subscription passes by a deny list (CVE-2026-58251)",
           "name what is allowed, and nothing else");
  }

  // Of the API exact subjects alone.
  void api() {
    Places places(settings_);
    for (const Grant& grant : grants_) {
      if (!grant.publishes) continue;
      for (const SettingValue* const subject : grant.allowed) {
        const std::string_view text = subject->text;
        const bool is_pattern = cluster::has_wildcards(text);
        const bool reaches_api = cluster::do_overlap(text, "$JS.>");
        if (is_pattern && reaches_api)
          places.add(*subject, fmt::format("user {} may publish on '{}'", grant.whose, text));
      }
    }
    report("jetstream-api", places, "of JetStream's API exact subjects are allowed",
           "that user can empty or delete what is kept, in other accounts, too (CVE-2025-30215)",
           "name the subjects, as $JS.API.STREAM.MSG.GET.KV_clew_default");
  }

  void whole_rights() {
    Places places(settings_);
    for (const User& user : users_) {
      if (user.permissions == nullptr)
        places.add(*user.at, fmt::format("user {} has no permissions, so it has all", user.name));
    }
    for (const Grant& grant : grants_) {
      const std::string_view what = grant.publishes ? "publish" : "subscribe to";
      if (!grant.has_list) {
        places.add(*grant.at,
                   fmt::format("user {} may {} everything: there is no list", grant.whose, what));
      }
      // The server takes an empty list for none.
      if (grant.has_list && grant.allowed.empty()) {
        places.add(*grant.at,
                   fmt::format("user {} may {} everything: its list is empty", grant.whose, what));
      }
      for (const SettingValue* const subject : grant.allowed) {
        if (subject->text == ">" || subject->text == "*.>")
          places.add(*subject, fmt::format("user {} may {} everything", grant.whose, what));
      }
    }
    report("permissions", places, "each user has lists of what it may publish and subscribe to",
           "it can speak for any node and root", "give each user its lists");
  }

  // A user that is a node, and may speak for others. A root says other things, to all.
  void names_of_nodes() {
    Places places(settings_);
    for (const Grant& grant : grants_) {
      if (!grant.publishes) continue;
      std::set<std::string> nodes;
      for (const SettingValue* const subject : grant.allowed) {
        const std::string& text = subject->text;
        const bool is_nodes = text.starts_with("clew.") && (text.find(".beat.") != text.npos ||
                                                            text.find(".part.") != text.npos);
        if (is_nodes) nodes.insert(text.substr(text.rfind('.') + 1));
      }
      const bool is_any = nodes.contains("*") || nodes.contains(">");
      if (is_any || nodes.size() > 1) {
        places.add(*grant.at, fmt::format("user {} may speak for {}", grant.whose,
                                          is_any ? "any node" : "several nodes"));
      }
    }
    report("nodes", places, "no user may speak for several nodes",
           "its counts cannot be told from another node's",
           "allow each node clew.TENANT.beat.NODE and clew.TENANT.part.*.*.NODE");
  }

  // --- listeners ---------------------------------------------------------------------------------

  void other_listeners() {
    Places places(settings_);
    for (const std::string_view name : {"websocket", "mqtt"}) {
      for (const SettingValue* const found : root_.all(name))
        places.add(*found, fmt::format("a listener for {}", name));
    }
    report("other-listeners", places, "no listener for websockets or MQTT",
           "they have let in whom the other one refuses", "take them out: Clew uses neither");
  }

  [[nodiscard]] static std::string listens_at(const SettingValue& map) {
    if (const SettingValue* const whole = last_of(map, {"listen"})) return host_of(whole->text);
    const SettingValue* const host = last_of(map, {"host", "net", "addr"});
    return host == nullptr ? "" : host->text;
  }

  void on_the_way() {
    Places places(settings_);
    check_way(root_, "clients", places);
    const std::array<std::pair<Names, std::string_view>, 3> others = {
        {{{"cluster"}, "other servers"},
         {{"leafnodes", "leaf"}, "leaf nodes"},
         {{"gateway"}, "gateways"}}};
    for (const auto& [names, what] : others) {
      for (const std::string_view name : names) {
        for (const SettingValue* const found : root_.all(name)) {
          const bool listens =
              last_of(*found, {"listen", "host", "port", "net", "addr"}) != nullptr;
          if (listens) check_way(*found, what, places);
        }
      }
    }
    report("tls", places, "what goes beyond this machine is encrypted",
           "who is on the way can read and change queries and counts",
           "tls { cert_file: …, key_file: …, ca_file: …, verify_and_map: true }");
    const SettingValue* const tls = root_.last("tls");
    const bool is_verified =
        tls != nullptr && (is_true(tls->last("verify")) || is_true(tls->last("verify_and_map")));
    if (tls == nullptr || is_verified) return;
    findings_.note("certificates",
                   {.detail = fmt::format("{}: clients need no certificate", settings_.place(*tls)),
                    .remedy = "verify_and_map: true, and certificates whose URI "
                              "names the user"});
  }

  void check_way(const SettingValue& map, std::string_view whom, Places& places) const {
    const std::string host = listens_at(map);
    if (cluster::is_loopback(host)) return;
    const SettingValue* const tls = map.last("tls");
    const std::string where = host.empty() ? "all addresses" : host;
    if (tls == nullptr)
      places.add(map, fmt::format("{} are listened to at {} without TLS", whom, where));
    if (tls != nullptr && is_true(tls->last("insecure")))
      places.add(*tls, fmt::format("'insecure' believes any certificate, of {}", whom));
    if (is_true(map.last("allow_non_tls")))
      places.add(*map.last("allow_non_tls"), "'allow_non_tls' lets plain text in");
  }

  void monitoring() {
    Places places(settings_);
    for (const std::string_view name : {"http", "http_port", "monitor_port", "prof_port"}) {
      for (const SettingValue* const found : root_.all(name)) {
        const std::string host = host_of(found->text);
        const std::string at = host.empty() ? listens_at(root_) : host;
        if (!cluster::is_loopback(at)) places.add(*found, fmt::format("'{}' is open to all", name));
      }
    }
    report("monitoring", places, "monitoring is not reached from other machines",
           "it shows users, addresses and how the server was started, to whoever asks",
           "http: \"127.0.0.1:8222\", or take it out");
  }

  void jetstream() {
    const SettingValue* const found = root_.last("jetstream");
    const bool is_off = found != nullptr && found->kind == Kind::Text && !is_true(found) &&
                        found->text != "enabled";
    if (found != nullptr && !is_off) return findings_.ok("jetstream", "it keeps logs and keys");
    findings_.note("jetstream",
                   {.detail = "JetStream is not on, but for a server that is started with -js",
                    .refused = "a cluster needs it",
                    .remedy = "jetstream { store_dir: … }"});
  }

  const Settings& settings_;
  const SettingValue& root_;
  Findings& findings_;
  std::vector<User> users_;
  std::vector<Grant> grants_;
};

}  // namespace

void check_nats_settings(const Settings& settings, Findings& findings) {
  Rules(settings, findings).check();
}

}  // namespace clew::doctor
