from .verification.verdicts import verify_text as verify_text
