"""What a designer would measure on a page: contrast of all text, and that everything fits its width."""

MIN_CONTRAST = 4.5
"""WCAG 2.2, success criterion 1.4.3, for text of ordinary size."""

FAINT = """(root) => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = colour => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a)).concat(1);
    const behind = element => {
        const layers = [];
        for (let at = element; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
        return layers.reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
    };
    const light = colour => {
        const [r, g, b] = colour.map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const faint = [];
    for (const element of root.querySelectorAll('*')) {
        const own = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data).join('').trim();
        const style = getComputedStyle(element);
        const isSeen = element.checkVisibility() && !element.closest('[aria-hidden=true], style');
        if (!own || element.disabled || !isSeen) continue;
        const ground = behind(element);
        const [one, other] = [light(over(rgba(style.color), ground)), light(ground)].sort((a, b) => b - a);
        const contrast = (one + .05) / (other + .05);
        if (contrast < MIN) faint.push(`${contrast.toFixed(2)}: ${own.slice(0, 40)}`);
    }
    return faint;
}""".replace("MIN)", f"{MIN_CONTRAST})")

WIDE = """(root) => {
    const edge = root.getBoundingClientRect();
    const wide = root.scrollWidth > root.clientWidth + 1 ? ['the whole'] : [];
    for (const element of root.querySelectorAll('button, input, textarea, a, p, code, td, h1, h2, h3, li')) {
        const box = element.getBoundingClientRect();
        const isSeen = element.checkVisibility() && box.right > 0;  // a skip link waits outside
        if (isSeen && (box.right > edge.right + 1 || box.left < edge.left - 1))
            wide.push(`${element.tagName} ${element.textContent.slice(0, 40)}`);
    }
    return wide;
}"""


def faint(root):
    """Texts that do not stand out from what is behind them."""
    return root.evaluate(FAINT)


def too_wide(root):
    """What sticks out at the sides."""
    return root.evaluate(WIDE)
