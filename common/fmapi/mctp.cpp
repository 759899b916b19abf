#include "common/fmapi/mctp.h"
