"""mail-server.py PORT MAILDIR CERTIFICATE KEY starttls|tls: a real mail server for tests, which keeps what it is given.

It knows the user `onus` with the password `password`, speaks to nobody before TLS, has no bounce@ (550) and no time for slow@ (451).
"""

import signal
import ssl
import sys

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import AuthResult


class Keeper(Mailbox):
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("bounce@"):
            return "550 no such user"
        if address.startswith("slow@"):
            return "451 try later"
        envelope.rcpt_tos.append(address)
        return "250 OK"


def known(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"onus", b"password"))


port, maildir, certificate, key, mode = sys.argv[1:]
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
options = {"ssl_context": context} if mode == "tls" else {"tls_context": context, "require_starttls": True}
server = Controller(Keeper(maildir), hostname="127.0.0.1", port=int(port), authenticator=known, auth_required=True,
                    auth_require_tls=mode != "tls", **options)
server.start()
signal.pause()
