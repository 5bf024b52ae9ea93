"""Which options of sources and sinks people and logs may see: those that are known to be harmless, and no others.

A value is shown if its key is known for its format and the value itself carries no credentials. A value that surely is
a secret must be a reference (`core/secret_reference.py`): options are kept in the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dovetail.core.errors import SecretError
from dovetail.core.known_secrets import HIDDEN
from dovetail.core.secret_reference import HOW_TO_WRITE, check_reference, is_reference
from dovetail.query.formats import FILE_FORMATS, JDBC, KAFKA, RATE

# In small letters: Spark takes keys in any case.
_OF_EVERY_SINK = "mode partitionby identify"
_OF_FILES = """
    allowbackslashescapinganycharacter allowcomments allownonnumericnumbers allownumericleadingzeros allowsinglequotes
    allowunquotedcontrolchars allowunquotedfieldnames attributeprefix avroschema basepath chartoescapequoteescaping
    cleansource columnnameofcorruptrecord comment compression dateformat datetimerebasemode declaration delimiter
    dropfieldifallnull emptyvalue encoding enforceschema escape escapequotes excludeattribute filenameonly header
    ignoreextension ignoreleadingwhitespace ignorenullfields ignoresurroundingspaces ignoretrailingwhitespace
    inferschema int96rebasemode latestfirst linesep locale maxbytespertrigger maxcharspercolumn maxcolumns maxfileage
    maxfilespertrigger mergeschema modifiedafter modifiedbefore multiline nanvalue negativeinf nullvalue path
    pathglobfilter positiveinf prefersdate primitivesasstring quote quoteall quotemode recordname recordnamespace
    recursivefilelookup rootag rowtag samplingratio sep sourcearchivedir timestampformat timestampntzformat timezone
    unescapedquotehandling valuetag wholetext
"""
_OF_KAFKA = """
    assign endingoffsets endingoffsetsbytimestamp endingtimestamp failondataloss fetchoffset.numretries
    fetchoffset.retryintervalms groupidprefix includeheaders kafka.acks kafka.bootstrap.servers kafka.client.id
    kafka.compression.type kafka.enable.idempotence kafka.fetch.max.bytes kafka.group.id kafka.linger.ms
    kafka.max.poll.records kafka.max.request.size kafka.request.timeout.ms kafka.sasl.kerberos.service.name
    kafka.sasl.mechanism kafka.security.protocol kafka.session.timeout.ms kafka.ssl.endpoint.identification.algorithm
    kafka.ssl.keystore.location kafka.ssl.keystore.type kafka.ssl.protocol kafka.ssl.truststore.location
    kafka.ssl.truststore.type kafkaconsumer.polltimeoutms key maxoffsetspertrigger maxrecordsperpartition
    maxtriggerdelay minoffsetspertrigger minpartitions startingoffsets startingoffsetsbytimestamp startingtimestamp
    subscribe subscribepattern topic
"""
_OF_JDBC = "batchsize createtableoptions dbtable driver fetchsize isolationlevel numpartitions truncate url user"
_HARMLESS = {
    **{kind: frozenset((_OF_EVERY_SINK + _OF_FILES).split()) for kind in FILE_FORMATS},
    KAFKA: frozenset((_OF_EVERY_SINK + _OF_KAFKA).split()),
    RATE: frozenset(["rowspersecond", "rampuptime", "numpartitions", "rowspermicrobatch", "starttimestamp"]),
    JDBC: frozenset((_OF_EVERY_SINK + " " + _OF_JDBC).split()),
}
_WORD_OF_SECRETS = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|jaas|sas|sig|signature|auth|authorization|bearer"
    r"|cookie|(?:api|access|account|private|shared|master|encryption|storage)[._-]?key"
)
_KEY_OF_SECRETS = re.compile(
    rf"password|passwd|passphrase|secret|token|credential|jaas|authorization|keystore\.key\Z|keystore\.certificate"
    rf"|(?:\A|[._-])(?:{_WORD_OF_SECRETS})(?:\Z|[._-])|(?:api|access|account|private|shared|master|storage)[._-]?key",
    re.IGNORECASE,
)
_IS_URL = re.compile(r"\A\s*(?:[A-Za-z][A-Za-z0-9+.-]*:)+/?/?|://")
_BEHIND_ADDRESS = re.compile(r"@|[?&;][^=&;\s]*=")
_CREDENTIALS = re.compile(
    rf"(?:\A|[^A-Za-z])(?:{_WORD_OF_SECRETS})(?:\s*=|[\"']\s*:\s*[\"'])\s*\S|-----BEGIN "
    r"|//[^/?#\s@]*:[^/?#\s@]*@|\Ajdbc:\S*:[^/@:\s]+/[^/@\s]+@",
    re.IGNORECASE,
)
_FLAG = re.compile(r"true|false", re.IGNORECASE)


def hide_secrets(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a source or sink of format `kind` as people may see them; references are no secrets.

    >>> hide_secrets("kafka", {"topic": "views", "kafka.ssl.key.password": "secret://env/KEY", "x": "y"})
    {'topic': 'views', 'kafka.ssl.key.password': 'secret://env/KEY', 'x': '***'}
    >>> hide_secrets("jdbc", {"url": "jdbc:postgresql://db/shop?user=u&password=p"})
    {'url': '***'}
    """
    return {key: value if _is_harmless(kind, key, value) else HIDDEN for key, value in options.items()}


def check_no_secrets(owner: str, options: Mapping[str, str]) -> None:
    """Raise if a value surely is a secret in clear, or a reference is malformed; `owner` has these options."""
    for key, value in options.items():
        if is_reference(value):
            check_reference(value)
        elif not _FLAG.fullmatch(value) and (_KEY_OF_SECRETS.search(key) or _CREDENTIALS.search(value)):
            raise SecretError(
                f"{owner}: the value of {key!r} is a secret in clear, and options are kept in the checkpoint",
                hint=f"{HOW_TO_WRITE}; a reference is the whole value",
            )


def _is_harmless(kind: str, key: str, value: str) -> bool:
    if is_reference(value) or _FLAG.fullmatch(value):
        return True
    is_known = key.lower() in _HARMLESS.get(kind.lower(), frozenset(_OF_EVERY_SINK.split()))
    # An address with anything else in it is hidden as a whole: nobody knows what every driver takes there.
    is_more = _IS_URL.search(value) and _BEHIND_ADDRESS.search(value)
    return is_known and not is_more and not _CREDENTIALS.search(value)
