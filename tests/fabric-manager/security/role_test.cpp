#include "fabric-manager/security/role.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

// One letter a privilege, in the order of kPrivileges, for what the role has.
std::string letters(Role role) {
    constexpr std::string_view kLetters = "pfcCFetdr";
    std::string result;
    for (std::size_t i = 0; i < kPrivileges.size(); ++i)
        result += has_privilege(role, kPrivileges[i]) ? kLetters[i] : '-';
    return result;
}

TEST(Roles, HaveThePrivilegesOfTheTableInTheDocumentation) {
    EXPECT_EQ(letters(Role::kAdmin), "pfcCFetdr");
    EXPECT_EQ(letters(Role::kOperator), "pfcCFetd-");
    EXPECT_EQ(letters(Role::kViewer), "pfc--etd-");
    EXPECT_EQ(letters(Role::kTenant), "p-cC-et--");
    EXPECT_EQ(letters(Role::kAgent), "p------dr");
}

TEST(Roles, AreReadAsTheyAreWritten) {
    for (const Role role : kRoles) EXPECT_EQ(parse_role(to_string(role)), role);
    for (const char* text : {"", "Admin", "admin ", "root", "agen"}) EXPECT_FALSE(parse_role(text)) << text;
}

}  // namespace
}  // namespace memtide::fm
