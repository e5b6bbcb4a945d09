/* SPDX-License-Identifier: Apache-2.0 */
/* Tables are sorted by the sum of bucket times count. */
BEGIN
{
	@["large"] = quantize(1000);
	@["small"] = quantize(1);
	@["small"] = quantize(2);
	printa("%s%@d", @);
	exit(0);
}
/* output:
small
           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@@@@@@@@@@@                     1        
               2 |@@@@@@@@@@@@@@@@@@@@                     1        
               4 |                                         0        
large
           value  ------------- Distribution ------------- count    
             256 |                                         0        
             512 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
            1024 |                                         0        

*/
