// What the test programs include, parsed once a preset.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cmake/precompiled/product.h"
