"""Language models where notebooks look for them: the names of `legal_rag.llm` that an agent takes."""

from legal_rag.llm import Budget as Budget
from legal_rag.llm import Usage as Usage
from legal_rag.llm import build_language_model as build_language_model
from legal_rag.llm import check_model as check_model
from legal_rag.llm import has_endpoint as has_endpoint
from legal_rag.llm import is_asked as is_asked
