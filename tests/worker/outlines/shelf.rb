module Shelf # DEF module Shelf
  class Box < Struct.new(:a) # DEF class Box
    SIZE = 1 # DEF constant SIZE
    class << self
      def made; end # DEF method made
    end
    def self.of(x) = new(x) # DEF method self.of
    def empty?; a.size / 2 == "def no"; end # DEF method empty?
    def <=>(other) # DEF method <=>
      text = <<~TEXT
        def no
        end
      TEXT
      list = %w(class def)
      "#{list.map { |x| "def #{x}" }}"
    end
    private def hidden; end # DEF method hidden
  end
end
=begin
def no
end
=end
__END__
def no
