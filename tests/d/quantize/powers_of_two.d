/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: a value falls in the largest power of two that is not above it. */
BEGIN
{
	@ = quantize(1);
	@ = quantize(2);
	@ = quantize(3);
	@ = quantize(4);
	@ = quantize(7);
	@ = quantize(8);
	@ = quantize(8);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@                                   1        
               2 |@@@@@@@@@@@                              2        
               4 |@@@@@@@@@@@                              2        
               8 |@@@@@@@@@@@                              2        
              16 |                                         0        

*/
