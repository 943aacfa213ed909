"""The documented prefixes of issued keys, grouped by the form of the text after the prefix.

Lengths are lower bounds, so that a longer key is found too. The body of a key has a digit; a name has none.
"""

from __future__ import annotations

LETTERS_AND_DIGITS = (
    # Models and search.
    *("gsk_", "pplx-", "xai-", "r8_", "nvapi-", "tvly-", "jina_", "api_org_", "pnu_", "fc-"),
    # Clouds, hosting and deployment.
    *("dop_v1_", "doo_v1_", "dor_v1_", "ABSK", "LTAI", "AQVN", "HRKU-", "fo1_", "sbp_", "tk-us-", "rdme_"),
    # Code, packages and builds.
    *("rubygems_", "CLOJARS_", "oy2", "AKCp", "cmVmd", "pul-", "ATBB", "figd_", "tfp_"),
    # Work: notes, tickets, telemetry.
    *(
        "ntn_",
        "lin_api_",
        "lin_oauth_",
        "PMAK-",
        "NRAK-",
        "NRII-",
        "NRJS-",
        "glc_",
        "glsa_",
        "sntryu_",
        "4b1d",
    ),
    *("sm_pat_", "sm_aat_", "sm_sat_", "p8e-", "ico-", "dnkey-"),
    # Shops, payment and mail.
    *("shpat_", "shpca_", "shppa_", "shpss_", "shpua_", "whsec_", "EZAK", "EZTK", "EAAA", "EAAC", "EAAM"),
    *("shippo_live_", "shippo_test_", "FLWSECK_TEST-", "FLWPUBK_TEST-"),
    *("xkeysib-", "xsmtpsib-", "re_live_", "sk_prod_", "rk_prod_", "AGE-SECRET-KEY-1"),
)
"""Prefixes before 20 or more letters and digits and no other character."""

WITH_SIGNS = (
    *("SG.", "ya29.", "hvs.", "hvb.", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
    *("glrt-", "glcbt-", "gldt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-"),
    *("pypi-AgE", "ATATT3", "ATCTT3", "GOCSPX-", "sntrys_", "ops_eyJ", "pscale_tkn_", "pscale_pw_"),
    *(
        "pscale_oauth_",
        "sq0atp-",
        "sq0csp-",
        "GR1348941",
        "duffel_live_",
        "duffel_test_",
        "fm1r_",
        "fm1a_",
        "fm2_",
        "fio-u-",
        "sha256~",
        "1//0",
        "dt0c01.",
    ),
)
"""Prefixes before 20 or more letters, digits and signs."""

_HEX = "[a-f0-9]"
EXACT = (
    rf"dapi{_HEX}{{32}}",
    rf"key-{_HEX}{{32}}",
    rf"SK{_HEX}{{32}}",
    rf"{_HEX}{{32}}-us[0-9]{{1,2}}",
    rf"v1\.0-{_HEX}{{24}}-{_HEX}{{40}}",
    rf"access-(?:sandbox|development|production)-{_HEX}{{8}}-[a-f0-9-]{{27}}",
    rf"sgp_(?:local_|{_HEX}{{16}}_)?{_HEX}{{40}}",
    r"mfa\.[A-Za-z0-9_-]{60}",
    r"API-[A-Z0-9]{26}",
    r"A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}-[A-Z0-9-]{17}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40}",
    r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31}",
    # The public part of a hosting token is a JSON object.
    r"[ps]k\.eyJ[A-Za-z0-9_-]{16}",
)
"""Patterns of whole keys, for prefixes that ordinary words have too."""

HOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)/",
    r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{10,20}/",
    r"webhook\.office\.com/webhookb2/",
    r"hooks\.zapier\.com/hooks/catch/",
)
"""Addresses whose remaining path is the secret."""

MARKS = (
    # The beginning of a body of any length, after the end of any prefix; plain characters first.
    r"_[A-Za-z0-9]{20}|-[A-Za-z0-9]{16}|\.[A-Za-z0-9_~-]{16}",
    r"ABSK|LTAI|AQVN|oy2|AKCp|cmVmd|GR1348941|ATBB|EZAK|EZTK|EAAA|EAAC|EAAM|4b1d|AGE-SECRET-KEY-1",
    r"SG\.|ya29\.|hv[sb]\.|dp\.[a-z]|gl[a-z]{1,5}-|pypi-AgE|AT[AC]TT3|GOCSPX-|sntrys_|ops_eyJ|pscale_|sq0[ac]",
    r"sgp_|duffel_|fm1[ra]_|fm2_|fio-u-|sha256~|1//0|dt0c01\.|dapi|SK[a-f0-9]{32}|-us[0-9]|v1\.0-|access-[sdp]|mfa\.|API-|A3-",
    r"\.atlasv1\.|Q~(?<=[0-9]Q~)|pk\.eyJ|sk\.eyJ|hooks\.|webhook",
)
