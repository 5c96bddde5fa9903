"""Where figures stand on a page."""

from __future__ import annotations

BOXES = """
() => [...document.querySelectorAll("figure")].map((figure) => {
  const own = figure.getBoundingClientRect();
  const inside = [...figure.querySelectorAll(".activation, .bar, .title")].map((each) => each.getBoundingClientRect());
  const number = figure.querySelector(".activation");
  return {
    beyond: inside.some((each) => each.left < own.left - 1 || each.right > own.right + 1),
    lines: number.getBoundingClientRect().height / parseFloat(getComputedStyle(number).lineHeight),
    words: number.textContent.trim(),
  };
})
"""
