-- themes.lua -- the colours of pages, dark and light: such as every kind of colour vision tells apart (Okabe and Ito).
-- `ground`: what worlds are drawn on, whose own colours suit both.  `dark`: a colour map grows lighter.
return {
  dark = {
    page = 0x0F131AFF, card = 0x181E28FF, line = 0x2C3645FF, grid = 0x252E3BFF, ground = 0x181E28FF,
    text = 0xE8ECF2FF, dim = 0x9AA7B8FF, accent = 0x56B4E9FF, warm = 0xF0A63AFF,
    good = 0x2CC295FF, bad = 0xF07A4BFF, violet = 0xD78FBAFF, shade = 0x0F131AD8, dark = true,
  },
  light = {
    page = 0xEEF1F5FF, card = 0xFFFFFFFF, line = 0xB4BFCCFF, grid = 0xDFE5ECFF, ground = 0xE6EBF1FF,
    text = 0x17202BFF, dim = 0x56626FFF, accent = 0x0072B2FF, warm = 0xB86200FF,
    good = 0x007A5CFF, bad = 0xC24300FF, violet = 0x9C4380FF, shade = 0xEEF1F5D8,
  },
}
