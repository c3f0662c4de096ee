// SPDX-License-Identifier: Apache-2.0
// Components of a role, and for a file, from descriptions alone.
#include <filesystem>

#include <boost/algorithm/string/predicate.hpp>

#include "registry/registry.hpp"
#include "schemas/kept.hpp"

namespace tenon::host {
namespace {

std::vector<std::string> extensions_of(const ComponentText& text) {
  std::vector<std::string> found;
  const Json& schema = schema_json(text.schema);
  if (!schema.is_object() || !schema.contains("extensions")) return found;
  for (const Json& extension : schema["extensions"])
    if (extension.is_string()) found.push_back(extension.get<std::string>());
  return found;
}

}  // namespace

std::vector<const ComponentText*> Registry::described(std::string_view role) {
  std::lock_guard hold(lock_);
  scan();
  warn_of_quarantine(role);
  std::vector<const ComponentText*> found;
  for (const Candidate& c : candidates_)
    for (const ComponentText& t : c.text.components)
      if (usable(c) && t.role == role) found.push_back(&t);
  return found;
}

Result<std::string> Registry::for_file(std::string_view role, std::string_view path) {
  // A folder is known by its last slash, also where the caller left it out; by its own ending
  // first.
  std::error_code ignored;
  std::string folder(path);
  if (std::filesystem::is_directory(folder, ignored)) folder += '/';
  std::string best;
  size_t longest = 0;
  std::string known;
  for (const ComponentText* t : described(role)) {
    for (const std::string& extension : extensions_of(*t)) {
      known += cat(known.empty() ? "" : ", ", extension);
      bool fits = boost::iends_with(path, extension) || boost::iends_with(folder, extension);
      if (extension.size() <= longest || !fits) continue;
      best = t->id;
      longest = extension.size();
    }
  }
  if (!best.empty()) return best;
  std::lock_guard hold(lock_);
  if (known.empty()) return no_component(role, path);  // a role whose components read no files
  // "tenon.writer/1" is the ABI's word for a writer.
  size_t begin = role.find('.') + 1, end = role.find('/');
  return not_found(cat(path, ": no ", role.substr(begin, end - begin),
                       " is for such a file; expected a name with ", known));
}

std::vector<std::string> Registry::remarks(const Candidate& c) const {
  std::vector<std::string> out;
  for (const ComponentText& t : c.text.components) {
    if (std::string why = why_no_role(t.role); !why.empty())
      out.push_back(cat("component ", t.id, ": ", why));
    const tn_component* rows =
        c.plugin && t.role == kOperatorsRole ? c.plugin->find(t.role, t.id) : nullptr;
    if (rows && !allows(*rows))
      out.push_back(cat("component ", t.id,
                        ": its operators are drafts and may change: enable drafts to use them"));
    bool is_behind = false;  // `c` in the order of preference
    for (const Candidate& other : candidates_) {
      is_behind = is_behind || &other == &c;
      bool is_rival = &other != &c && usable(c) && usable(other) && t.role != kOperatorsRole &&
                      other.text.find(t.role, t.id);
      if (is_rival)
        out.push_back(cat("component ", t.id, " of role ", t.role,
                          is_behind ? " is used in place of" : " is not used:", " that of plugin ",
                          other.text.id, " (", other.file.string(), ")",
                          is_behind ? "" : " comes first"));
    }
  }
  return out;
}

std::string Registry::why_not(const Candidate& c) {
  if (!c.refused.empty()) return c.refused;
  return c.shadowed_by.empty() ? "" : cat(c.shadowed_by, " brings the same plugin and comes first");
}

}  // namespace tenon::host
