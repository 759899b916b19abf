#include "common/fmapi/codec.h"
