"""A person who has a keyboard and nothing else: what they press is counted."""

from __future__ import annotations

from dataclasses import dataclass, field

from playwright.sync_api import Locator, Page, expect

FOCUS = """() => {
  const here = document.activeElement;
  if (!here || here === document.body) return false;
  const box = here.getBoundingClientRect();
  const marked = [here, ...here.querySelectorAll('*'), here.closest('label'), here.nextElementSibling];
  const outlined = marked.filter(Boolean).some((each) => {
    const style = getComputedStyle(each);
    if (each.ownerSVGElement && style.stroke !== 'none' && parseFloat(style.strokeWidth) >= 2) return true;
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  });
  return outlined && box.bottom > 0 && box.top < innerHeight;
}"""


@dataclass
class Keyboard:
    """Presses keys on a page, each once; `pressed` keeps them. A chord as Control+Enter counts as its keys."""

    page: Page
    pressed: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(key.split("+")) for key in self.pressed)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.pressed.append(key)
            self.page.keyboard.press(key)

    def type(self, words: str) -> None:
        self.pressed.extend(words)
        self.page.keyboard.type(words)

    def reach(self, target: Locator, key: str = "Tab", most: int = 80) -> None:
        """Press a key until this has the focus; it must show that it has."""
        expect(target.first).to_be_visible()
        for _ in range(most):
            if target.first.evaluate("each => each === document.activeElement"):
                break
            self.press(key)
        expect(target.first).to_be_focused()
        assert self.page.evaluate(FOCUS), f"{target} has the focus and does not show it"
