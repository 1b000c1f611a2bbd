// Marks what the shared library exports, and names the inline namespace of this API version.
#pragma once

#define WHERRY_API [[gnu::visibility("default")]]
