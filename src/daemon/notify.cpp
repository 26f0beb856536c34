#include "daemon/notify.h"

#ifdef AIQ_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace aiq {

#ifdef AIQ_HAVE_SYSTEMD
void notify_ready() {
  (void)sd_notify(0, "READY=1");
}
void notify_stopping() {
  (void)sd_notify(0, "STOPPING=1");
}
void notify_watchdog() {
  (void)sd_notify(0, "WATCHDOG=1");
}
#else
void notify_ready() {}
void notify_stopping() {}
void notify_watchdog() {}
#endif

}  // namespace aiq
