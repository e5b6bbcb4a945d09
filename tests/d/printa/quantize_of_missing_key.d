/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 33: a missing table is one of zeros. */
BEGIN
{
	@n["a"] = sum(1);
	@n["b"] = sum(2);
	@q["b"] = quantize(1);
	printa("%s %@d%@d", @n, @q);
	exit(0);
}
/* output:
a 1
           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |                                         0        
               1 |                                         0        
b 2
           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               2 |                                         0        

*/
